//! The sections `[transport]`, `[tls]` and `[upstream_options]` of the file, and their conversion to the options of
//! `hapax-proxy`, which has the reasons of the defaults.

use std::path::PathBuf;

use hapax::http::settings::Span;
use hapax::http::settings::size::{self, Size};
use hapax_proxy::{ListenerOptions, TlsFiles, UpstreamProtocol};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Timeouts and limits of the listener.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Transport {
    /// How long a new connection may stay silent, and how long a TLS handshake may take.
    #[schemars(with = "String")]
    pub(crate) first_byte: Span,
    /// How long the head of a request may take from its first byte.
    #[schemars(with = "String")]
    pub(crate) head: Span,
    /// How long the sender of a body may pause.
    #[schemars(with = "String")]
    pub(crate) body_idle: Span,
    /// The minimum rate of a body in bytes per second, enforced once `body_idle` has passed. 0: any rate.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) body_rate_min: u64,
    /// How long a connection may wait for its next request.
    #[schemars(with = "String")]
    pub(crate) keep_alive: Span,
    /// How long a client may read nothing of its response.
    #[schemars(with = "String")]
    pub(crate) write_idle: Span,
    /// The most response bytes buffered for slow clients, on all connections together. Beyond that, the slowest responses
    /// are aborted.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) answer_bytes_in_all_max: usize,
    /// The most open connections.
    pub(crate) connections_max: usize,
    /// The most open connections of one peer address. 0: only `connections_max` applies.
    pub(crate) connections_per_peer_max: usize,
    /// The most bytes of a request's head.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) head_bytes_max: usize,
    /// The most fields of a request's head.
    pub(crate) head_fields_max: usize,
    /// The most concurrent requests of one HTTP/2 connection.
    pub(crate) streams_max: u32,
    /// Whether HTTP/2 is served: with prior knowledge, and over TLS where the client offers it.
    pub(crate) http2: bool,
    /// Whether `Forwarded` (RFC 7239) is sent beside the `X-Forwarded` fields.
    pub(crate) forwarded: bool,
    /// Whether the `X-Forwarded` fields of clients are kept and extended. Only where every client is a trusted proxy.
    pub(crate) trust_forwarded: bool,
}

impl Default for Transport {
    fn default() -> Self {
        let ListenerOptions {
            first_byte,
            head,
            body_idle,
            body_rate_min,
            keep_alive,
            write_idle,
            response_bytes_max,
            connections_max,
            connections_per_peer_max,
            head_bytes_max,
            head_fields_max,
            streams_max,
            http2,
            forwarded,
            trust_forwarded,
            ..
        } = ListenerOptions::default();
        Self {
            first_byte: Span(first_byte),
            head: Span(head),
            body_idle: Span(body_idle),
            body_rate_min,
            keep_alive: Span(keep_alive),
            write_idle: Span(write_idle),
            answer_bytes_in_all_max: response_bytes_max,
            connections_max,
            connections_per_peer_max,
            head_bytes_max,
            head_fields_max,
            streams_max,
            http2,
            forwarded,
            trust_forwarded,
        }
    }
}

impl Transport {
    pub(super) fn listener_options(&self) -> ListenerOptions {
        let Self {
            first_byte,
            head,
            body_idle,
            body_rate_min,
            keep_alive,
            write_idle,
            answer_bytes_in_all_max,
            connections_max,
            connections_per_peer_max,
            head_bytes_max,
            head_fields_max,
            streams_max,
            http2,
            forwarded,
            trust_forwarded,
        } = *self;
        let mut options = ListenerOptions::default();
        options.first_byte = first_byte.0;
        options.head = head.0;
        options.body_idle = body_idle.0;
        options.body_rate_min = body_rate_min;
        options.keep_alive = keep_alive.0;
        options.write_idle = write_idle.0;
        options.response_bytes_max = answer_bytes_in_all_max;
        options.connections_max = connections_max;
        options.connections_per_peer_max = connections_per_peer_max;
        options.head_bytes_max = head_bytes_max;
        options.head_fields_max = head_fields_max;
        options.streams_max = streams_max;
        options.http2 = http2;
        options.forwarded = forwarded;
        options.trust_forwarded = trust_forwarded;
        options
    }
}

/// Certificate and private key of the listener, reloaded on SIGHUP.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// The file with the certificate and the chain to its root, in PEM.
    pub(crate) certificate: PathBuf,
    /// The file with its private key, in PEM.
    pub(crate) key: PathBuf,
}

impl Tls {
    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles { certificate: self.certificate.clone(), key: self.key.clone() }
    }
}

/// The version of HTTP that is spoken to upstreams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    /// As negotiated by ALPN; HTTP/1.1 without TLS.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, with prior knowledge where there is no TLS.
    Http2,
}

/// How upstreams are reached.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UpstreamOptions {
    /// How long connecting to an upstream may take, including the TLS handshake.
    #[schemars(with = "String")]
    pub(crate) connect: Span,
    /// How long an upstream may take until the head of its response.
    #[schemars(with = "String")]
    pub(crate) response: Span,
    /// How long an upstream may pause within a response.
    #[schemars(with = "String")]
    pub(crate) body_idle: Span,
    /// How long both sides of an upgraded connection may be silent.
    #[schemars(with = "String")]
    pub(crate) tunnel_idle: Span,
    /// How long an idle connection is kept. It must be shorter than the upstream's own timeout: a request that is sent
    /// while the upstream closes the connection has an unknown outcome.
    #[schemars(with = "String")]
    pub(crate) keep_alive: Span,
    /// The most connections in use for each address, health checks excluded. Streaming responses and upgraded connections
    /// count for as long as they last. 0: unlimited.
    pub(crate) connections_max: usize,
    /// How long a request waits for a connection while `connections_max` are in use. Then it is refused; nothing was sent.
    #[schemars(with = "String")]
    pub(crate) connection_wait: Span,
    /// The most idle connections kept for each address.
    pub(crate) idle_max: usize,
    /// The version of HTTP.
    pub(crate) protocol: Protocol,
    /// The file with the certificates to trust instead of the platform's, in PEM.
    pub(crate) ca_file: Option<PathBuf>,
    /// The interval of health checks. A single address is not checked.
    #[schemars(with = "String")]
    pub(crate) health_interval: Span,
    /// How long a health check may take.
    #[schemars(with = "String")]
    pub(crate) health_timeout: Span,
    /// The path of health checks: any response below 500 is healthy. Without it, an accepted connection is enough.
    pub(crate) health_path: Option<String>,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        let hapax_proxy::UpstreamOptions {
            connect,
            response,
            body_idle,
            tunnel_idle,
            keep_alive,
            connections_max,
            connection_wait,
            idle_max,
            health_interval,
            health_timeout,
            ..
        } = hapax_proxy::UpstreamOptions::default();
        Self {
            connect: Span(connect),
            response: Span(response),
            body_idle: Span(body_idle),
            tunnel_idle: Span(tunnel_idle),
            keep_alive: Span(keep_alive),
            connections_max,
            connection_wait: Span(connection_wait),
            idle_max,
            protocol: Protocol::Auto,
            ca_file: None,
            health_interval: Span(health_interval),
            health_timeout: Span(health_timeout),
            health_path: None,
        }
    }
}

impl UpstreamOptions {
    pub(super) fn proxy_options(&self) -> hapax_proxy::UpstreamOptions {
        let Self {
            connect,
            response,
            body_idle,
            tunnel_idle,
            keep_alive,
            connections_max,
            connection_wait,
            idle_max,
            protocol,
            ca_file,
            health_interval,
            health_timeout,
            health_path,
        } = self;
        let mut options = hapax_proxy::UpstreamOptions::default();
        options.connect = connect.0;
        options.response = response.0;
        options.body_idle = body_idle.0;
        options.tunnel_idle = tunnel_idle.0;
        options.keep_alive = keep_alive.0;
        options.connections_max = *connections_max;
        options.connection_wait = connection_wait.0;
        options.idle_max = *idle_max;
        options.protocol = match protocol {
            Protocol::Auto => UpstreamProtocol::Auto,
            Protocol::Http1 => UpstreamProtocol::Http1,
            Protocol::Http2 => UpstreamProtocol::Http2,
        };
        options.ca_file.clone_from(ca_file);
        options.health_interval = health_interval.0;
        options.health_timeout = health_timeout.0;
        options.health_path.clone_from(health_path);
        options
    }
}
