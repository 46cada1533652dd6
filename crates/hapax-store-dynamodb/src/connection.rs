//! A pool of HTTP/1 connections to one endpoint, each used by one request at a time.
//!
//! A connection returns to the pool only after its response was read to the end. A request that is dropped in flight closes
//! its connection, so that no other request reads its response. Nothing is sent twice here.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::response::Parts;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long an idle connection is trusted. The service closes them later than that; one that it closes while a request is in
/// flight makes the result unknown.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// The limit of idle connections.
const IDLE_MAX: usize = 128;

/// The response size limit: a page of a scan has one mebibyte of items, more than that as JSON, and no other response is
/// larger.
const RESPONSE_BYTES_MAX: usize = 32 << 20;

/// A connection for one request at a time.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// The address that requests are sent to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    host: String,
    port: u16,
    is_tls: bool,
    authority: String,
}

impl Endpoint {
    /// Parses `http://host[:port][/path]` or `https://…`; the path is returned separately.
    pub(crate) fn parse(url: &str) -> Option<(Self, String)> {
        let uri: http::Uri = url.parse().ok()?;
        let is_tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let authority = uri.authority()?;
        if authority.as_str().contains('@') {
            return None;
        }
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Some((Self { host, port, is_tls, authority: authority.as_str().to_owned() }, path))
    }

    /// Whether it is an endpoint of AWS, private endpoints included.
    pub(crate) fn is_of_aws(&self) -> bool {
        [".amazonaws.com", ".amazonaws.com.cn"].iter().any(|domain| self.host.ends_with(domain))
    }

    /// Host and port as in a `Host` header.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }
}

/// Why connecting failed. Nothing was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectError {
    Unreachable,
    Tls,
}

/// Establishes connections. TLS is configured on first use.
#[derive(Default)]
pub(crate) struct Connector {
    tls: OnceLock<Option<TlsConnector>>,
}

impl Connector {
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Sender, ConnectError> {
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port))
            .await
            .map_err(|_| ConnectError::Unreachable)?;
        // A request is written in one piece; Nagle's algorithm would only delay it.
        let _unsupported = stream.set_nodelay(true);
        if !endpoint.is_tls {
            return http_handshake(TokioIo::new(stream)).await;
        }
        let tls = self.tls.get_or_init(platform_tls).as_ref().ok_or(ConnectError::Tls)?;
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| ConnectError::Unreachable)?;
        let stream = tls.connect(name, stream).await.map_err(|_| ConnectError::Unreachable)?;
        http_handshake(TokioIo::new(stream)).await
    }
}

fn platform_tls() -> Option<TlsConnector> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier());
    Some(Arc::new(config.ok()?.with_no_client_auth()).into())
}

async fn http_handshake<I>(io: I) -> Result<Sender, ConnectError>
where
    I: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(io).await.map_err(|_| ConnectError::Unreachable)?;
    // It ends when the sender is dropped, or when the peer closes the connection.
    tokio::spawn(connection);
    Ok(sender)
}

/// Why a request has no response.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// It was never written, and is returned.
    NotSent(Box<http::Request<Full<Bytes>>>),
    /// It may have arrived.
    Lost,
}

/// Sends one request and reads its response to the end.
pub(crate) async fn exchange(
    sender: &mut Sender,
    request: http::Request<Full<Bytes>>,
) -> Result<(Parts, Vec<u8>), ExchangeError> {
    if sender.ready().await.is_err() {
        return Err(ExchangeError::NotSent(Box::new(request)));
    }
    let response = sender.try_send_request(request).await.map_err(|mut error| {
        error.take_message().map_or(ExchangeError::Lost, |request| ExchangeError::NotSent(Box::new(request)))
    })?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await.map_err(|_| ExchangeError::Lost)?;
    Ok((head, body.to_bytes().into()))
}

/// The idle connections to one endpoint.
pub(crate) struct Connections {
    endpoint: Endpoint,
    connector: Connector,
    /// The most recently used one last (LIFO).
    idle: Mutex<Vec<(Sender, Instant)>>,
}

impl Connections {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, connector: Connector::default(), idle: Mutex::default() }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// An idle connection, if there is a usable one.
    pub(crate) fn take_idle(&self) -> Option<Sender> {
        let mut idle = self.idle.lock();
        idle.retain(|(sender, since)| since.elapsed() < IDLE_TIMEOUT && !sender.is_closed());
        idle.pop().map(|(sender, _)| sender)
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Sender, ConnectError> {
        self.connector.connect(&self.endpoint).await
    }

    /// Returns a connection to the pool after its response was read to the end.
    pub(crate) fn put_back(&self, sender: Sender) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push((sender, Instant::now()));
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
