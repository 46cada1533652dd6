//! The sections `[transport]`, `[tls]` and `[upstream_options]` of the file, and their conversion to the options of
//! `hapax-proxy`, which has the reasons of the defaults.

use std::path::PathBuf;

use hapax::http::settings::Span;
use hapax::http::settings::size::{self, Size};
use hapax_proxy::{ListenerOptions, TlsFiles, UpstreamProtocol};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Deadlines and caps of the listener.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Transport {
    /// How long a new connection may stay silent, and how long a TLS handshake may take.
    #[schemars(with = "String")]
    pub(crate) first_byte: Span,
    /// How long the head of a request may take from its first byte.
    #[schemars(with = "String")]
    pub(crate) head: Span,
    /// How long a sender of a body may pause.
    #[schemars(with = "String")]
    pub(crate) body_idle: Span,
    /// The fewest bytes of body in a second, counted from the beginning once `body_idle` has passed. 0: any rate.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) body_rate_min: u64,
    /// How long a connection may wait for its next request.
    #[schemars(with = "String")]
    pub(crate) keep_alive: Span,
    /// How long a client may take nothing of its answer.
    #[schemars(with = "String")]
    pub(crate) write_idle: Span,
    /// The most bytes of answers that clients have not taken yet, on all connections together. Beyond that, the answers that
    /// are taken most slowly are cut off.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) answer_bytes_in_all_max: usize,
    /// The most open connections.
    pub(crate) connections_max: usize,
    /// The most open connections of one peer address. 0: as many as there are in all.
    pub(crate) connections_per_peer_max: usize,
    /// The most bytes of a request's head.
    #[serde(deserialize_with = "size::deserialize")]
    #[schemars(with = "Size")]
    pub(crate) head_bytes_max: usize,
    /// The most fields of a request's head.
    pub(crate) head_fields_max: usize,
    /// The most requests that one HTTP/2 connection may have open.
    pub(crate) streams_max: u32,
    /// Whether HTTP/2 is spoken: with prior knowledge, and over TLS where the client offers it.
    pub(crate) http2: bool,
    /// Whether `Forwarded` (RFC 7239) is sent beside the `X-Forwarded` fields.
    pub(crate) forwarded: bool,
    /// Whether the `X-Forwarded` fields of clients are kept and added to. Only where every client is a proxy of yours.
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

/// Certificate and key of the listener. They are read again on reload.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// The file with the certificate and those that lead to its root, in PEM.
    pub(crate) certificate: PathBuf,
    /// The file with its private key, in PEM.
    pub(crate) key: PathBuf,
}

impl Tls {
    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles { certificate: self.certificate.clone(), key: self.key.clone() }
    }
}

/// Which version of HTTP an upstream is spoken to in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    /// What TLS agrees on; HTTP/1.1 without TLS.
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
    /// How long a connection to an upstream may take, with TLS.
    #[schemars(with = "String")]
    pub(crate) connect: Span,
    /// How long an upstream may take until the head of its answer.
    #[schemars(with = "String")]
    pub(crate) response: Span,
    /// How long an upstream may pause within an answer.
    #[schemars(with = "String")]
    pub(crate) body_idle: Span,
    /// How long both sides of a connection that speaks another protocol may be silent.
    #[schemars(with = "String")]
    pub(crate) tunnel_idle: Span,
    /// How long an unused connection is kept. It must be shorter than the upstream keeps it: a request that is sent
    /// while the upstream hangs up has an unknown outcome.
    #[schemars(with = "String")]
    pub(crate) keep_alive: Span,
    /// The most open connections to each address, beside those of health checks. Answers that go on, and connections
    /// that speak another protocol, count for as long as they last. 0: any number.
    pub(crate) connections_max: usize,
    /// How long a request waits for a connection while as many are in use as may be. Then it is refused; nothing was sent.
    #[schemars(with = "String")]
    pub(crate) connection_wait: Span,
    /// The most unused connections that are kept for each address.
    pub(crate) idle_max: usize,
    /// The version of HTTP.
    pub(crate) protocol: Protocol,
    /// The file with the certificates to trust instead of the platform's, in PEM.
    pub(crate) ca_file: Option<PathBuf>,
    /// How often each of several addresses is checked.
    #[schemars(with = "String")]
    pub(crate) health_interval: Span,
    /// How long a check may take.
    #[schemars(with = "String")]
    pub(crate) health_timeout: Span,
    /// What is asked for in a check: any answer below 500 is a good one. Without it, taking a connection is enough.
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
