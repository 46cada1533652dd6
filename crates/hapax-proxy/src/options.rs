//! Limits and timeouts of the listener and of upstreams, each with its name and its reason.

use std::path::PathBuf;
use std::time::Duration;

/// Timeouts and limits of a [`Listener`](crate::Listener).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ListenerOptions {
    /// How long a new connection may stay silent, and how long a TLS handshake may take.
    pub first_byte: Duration,
    /// How long the head of a request may take from its first byte.
    pub head: Duration,
    /// How long the sender of a body may pause.
    pub body_idle: Duration,
    /// The minimum rate of a body in bytes per second, enforced once `body_idle` has passed. 0: any rate.
    pub body_rate_min: u64,
    /// How long a connection may wait for its next request.
    pub keep_alive: Duration,
    /// How long a client may read nothing of its response.
    pub write_idle: Duration,
    /// The most response bytes buffered for slow clients, on all connections together. Beyond that, the slowest
    /// responses are aborted.
    pub response_bytes_max: usize,
    /// The most open connections.
    pub connections_max: usize,
    /// The most open connections of one peer address. 0: only `connections_max` applies.
    pub connections_per_peer_max: usize,
    /// The most bytes of a request's head.
    pub head_bytes_max: usize,
    /// The most fields of a request's head.
    pub head_fields_max: usize,
    /// The most concurrent requests of one HTTP/2 connection.
    pub streams_max: u32,
    /// Whether HTTP/2 is served: with prior knowledge, and over TLS where the client offers it.
    pub http2: bool,
    /// Whether `Forwarded` (RFC 7239) is sent beside the `X-Forwarded` fields.
    pub forwarded: bool,
    /// Whether the `X-Forwarded` fields of clients are kept and extended. Only where every client is a trusted proxy.
    pub trust_forwarded: bool,
}

impl Default for ListenerOptions {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(10),
            head: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            // A slower body holds memory, and a claim, for no benefit.
            body_rate_min: 64,
            keep_alive: Duration::from_secs(75),
            write_idle: Duration::from_secs(30),
            response_bytes_max: 128 << 20,
            connections_max: 20_000,
            connections_per_peer_max: 0,
            head_bytes_max: 32 * 1024,
            head_fields_max: 100,
            streams_max: 100,
            http2: true,
            forwarded: false,
            trust_forwarded: false,
        }
    }
}

/// Certificate and private key of a listener, both in PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The file with the certificate and the chain to its root.
    pub certificate: PathBuf,
    /// The file with its private key.
    pub key: PathBuf,
}

/// The version of HTTP that is spoken to upstreams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UpstreamProtocol {
    /// As negotiated by ALPN; HTTP/1.1 without TLS.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, with prior knowledge where there is no TLS.
    Http2,
}

/// How [`Forward`](crate::Forward) reaches upstreams.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct UpstreamOptions {
    /// How long connecting may take, including the TLS handshake.
    pub connect: Duration,
    /// How long an upstream may take until the head of its response.
    pub response: Duration,
    /// How long an upstream may pause within a response.
    pub body_idle: Duration,
    /// How long both sides of an upgraded connection may be silent.
    pub tunnel_idle: Duration,
    /// How long an idle connection is kept. It must be shorter than the upstream's own timeout: a request that is sent
    /// while the upstream closes the connection has an unknown outcome.
    pub keep_alive: Duration,
    /// The most connections in use for each address, health checks excluded. Streaming responses and upgraded
    /// connections count for as long as they last. 0: unlimited.
    pub connections_max: usize,
    /// How long a request waits for a connection while `connections_max` are in use. Then it fails, unsent.
    pub connection_wait: Duration,
    /// The most idle connections kept for each address.
    pub idle_max: usize,
    /// The version of HTTP.
    pub protocol: UpstreamProtocol,
    /// The file with the root certificates to trust instead of the platform's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// The interval of health checks. A single address is not checked.
    pub health_interval: Duration,
    /// How long a health check may take.
    pub health_timeout: Duration,
    /// The path of health checks: any response below 500 is healthy. Without it, an accepted connection is enough.
    pub health_path: Option<String>,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            response: Duration::from_secs(60),
            body_idle: Duration::from_secs(300),
            tunnel_idle: Duration::from_secs(600),
            // Gunicorn closes idle connections after 2 seconds, Node and uvicorn after 5.
            keep_alive: Duration::from_millis(1500),
            // Below the number of ephemeral ports of one machine, and above what most services accept.
            connections_max: 4096,
            connection_wait: Duration::from_secs(5),
            idle_max: 256,
            protocol: UpstreamProtocol::Auto,
            ca_file: None,
            health_interval: Duration::from_secs(2),
            health_timeout: Duration::from_secs(1),
            health_path: None,
        }
    }
}
