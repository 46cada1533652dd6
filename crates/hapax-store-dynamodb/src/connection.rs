//! Connections to an HTTP endpoint: made, lent to one request at a time, kept while they are good.
//!
//! A connection is taken back only when its answer was read to the end. A request that is dropped on the way takes its
//! connection with it, so that nobody reads somebody else's answer. Nothing is sent twice here.

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

/// How long an unused connection is trusted. The service closes them after longer than that, and one that is closed
/// while a request is on its way makes the answer unknown.
const UNUSED_FOR: Duration = Duration::from_secs(15);

/// How many unused connections are kept.
const UNUSED_MAX: usize = 128;

/// The most bytes of an answer: a page of a scan has one mebibyte of items, more than that as JSON, and no answer is
/// larger.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// A connection that one request at a time may be sent on.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// Where requests go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    host: String,
    port: u16,
    is_tls: bool,
    authority: String,
}

impl Endpoint {
    /// Reads `http://host[:port][/path]` or `https://…`; the path is returned apart.
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

    /// Whether it is the service itself, a private endpoint of it included.
    pub(crate) fn is_of_aws(&self) -> bool {
        [".amazonaws.com", ".amazonaws.com.cn"].iter().any(|domain| self.host.ends_with(domain))
    }

    /// Host and port as a `Host` header has them.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }
}

/// Why there is no connection. Nothing was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotConnected {
    Unreachable,
    Tls,
}

/// Makes connections. What TLS needs is read when it is first needed.
#[derive(Default)]
pub(crate) struct Connector {
    tls: OnceLock<Option<TlsConnector>>,
}

impl Connector {
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Sender, NotConnected> {
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port))
            .await
            .map_err(|_| NotConnected::Unreachable)?;
        // A request is written as a whole; waiting for more to send only delays it.
        let _unsupported = stream.set_nodelay(true);
        if !endpoint.is_tls {
            return shake_hands(TokioIo::new(stream)).await;
        }
        let tls = self.tls.get_or_init(trusting_the_platform).as_ref().ok_or(NotConnected::Tls)?;
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| NotConnected::Unreachable)?;
        let stream = tls.connect(name, stream).await.map_err(|_| NotConnected::Unreachable)?;
        shake_hands(TokioIo::new(stream)).await
    }
}

fn trusting_the_platform() -> Option<TlsConnector> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier());
    Some(Arc::new(config.ok()?.with_no_client_auth()).into())
}

async fn shake_hands<I>(io: I) -> Result<Sender, NotConnected>
where
    I: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(io).await.map_err(|_| NotConnected::Unreachable)?;
    // It ends when the sender is gone, or when the other side hangs up.
    tokio::spawn(connection);
    Ok(sender)
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// It was never written: here it is again.
    NotSent(Box<http::Request<Full<Bytes>>>),
    /// It may have arrived.
    Lost,
}

/// Sends one request and reads its answer to the end.
pub(crate) async fn exchange(
    sender: &mut Sender,
    request: http::Request<Full<Bytes>>,
) -> Result<(Parts, Vec<u8>), Unanswered> {
    if sender.ready().await.is_err() {
        return Err(Unanswered::NotSent(Box::new(request)));
    }
    let response = sender.try_send_request(request).await.map_err(|mut error| {
        error.take_message().map_or(Unanswered::Lost, |request| Unanswered::NotSent(Box::new(request)))
    })?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|_| Unanswered::Lost)?;
    Ok((head, body.to_bytes().into()))
}

/// Connections to one endpoint that nobody uses at the moment, and the way to get new ones.
pub(crate) struct Connections {
    endpoint: Endpoint,
    connector: Connector,
    /// The last used one last.
    unused: Mutex<Vec<(Sender, Instant)>>,
}

impl Connections {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, connector: Connector::default(), unused: Mutex::default() }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A connection that is kept, if there is a good one.
    pub(crate) fn kept(&self) -> Option<Sender> {
        let mut unused = self.unused.lock();
        unused.retain(|(sender, since)| since.elapsed() < UNUSED_FOR && !sender.is_closed());
        unused.pop().map(|(sender, _)| sender)
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Sender, NotConnected> {
        self.connector.connect(&self.endpoint).await
    }

    /// Takes a connection back whose answer was read to its end.
    pub(crate) fn keep(&self, sender: Sender) {
        let mut unused = self.unused.lock();
        if unused.len() < UNUSED_MAX {
            unused.push((sender, Instant::now()));
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
