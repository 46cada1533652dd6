//! Connects to an address: name lookup, TCP, TLS, and the version of HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONNECTION, HOST, TE, UPGRADE};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Uri, Version};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::RequiredVersion;
use super::connection::{Http1Connection, Http2Connection, UpstreamConnection};
use super::outgoing_body::OutgoingBody;
use crate::error::SetupError;
use crate::options::{UpstreamOptions, UpstreamProtocol};
use crate::tls::{self, negotiated_http2};

/// The interval of pings on an idle HTTP/2 connection, and how long the reply may take.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// An upstream's address and protocol.
#[derive(Debug)]
pub(super) struct Target {
    host: String,
    port: u16,
    authority: Authority,
    protocol: UpstreamProtocol,
    tls: Option<TargetTls>,
}

#[derive(Debug)]
struct TargetTls {
    name: ServerName<'static>,
    any: Arc<ClientConfig>,
    /// For requests that ask for an upgrade.
    http1: Arc<ClientConfig>,
}

impl Target {
    /// The targets of all addresses. There is at least one.
    pub(super) fn all(addresses: &[Uri], options: &UpstreamOptions) -> Result<Vec<Self>, SetupError> {
        if addresses.is_empty() {
            return Err(SetupError::NoUpstream);
        }
        let is_encrypted = addresses.iter().any(|address| address.scheme() == Some(&Scheme::HTTPS));
        let ca_file = options.ca_file.as_deref();
        let tls = if is_encrypted {
            Some((
                tls::client_config(ca_file, options.protocol)?,
                tls::client_config(ca_file, UpstreamProtocol::Http1)?,
            ))
        } else {
            None
        };
        addresses.iter().map(|address| Self::new(address, options.protocol, tls.as_ref())).collect()
    }

    fn new(
        address: &Uri,
        protocol: UpstreamProtocol,
        tls: Option<&(Arc<ClientConfig>, Arc<ClientConfig>)>,
    ) -> Result<Self, SetupError> {
        let unusable = |problem| SetupError::upstream(address, problem);
        let authority = address.authority().ok_or_else(|| unusable("names no host"))?.clone();
        if authority.as_str().contains('@') {
            return Err(unusable("holds credentials, which are never sent"));
        }
        if !matches!(address.path(), "" | "/") || address.query().is_some() {
            return Err(unusable("has a path, and requests keep their own"));
        }
        let (is_tls, port) = match address.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(unusable("is neither http nor https")),
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = match tls.filter(|_| is_tls) {
            None => None,
            Some((any, http1)) => {
                let name = ServerName::try_from(host.clone()).map_err(|error| SetupError::Upstream {
                    address: address.clone(),
                    problem: "has a host that no certificate can name",
                    source: Some(error.into()),
                })?;
                Some(TargetTls { name, any: any.clone(), http1: http1.clone() })
            }
        };
        Ok(Self { host, port: authority.port_u16().unwrap_or(port), authority, protocol, tls })
    }

    /// Whether a new connection will be HTTP/2; with ALPN, assumed from the one before.
    pub(super) fn expects_http2(&self, was_http2: bool) -> bool {
        match self.protocol {
            UpstreamProtocol::Auto => was_http2 && self.tls.is_some(),
            UpstreamProtocol::Http1 => false,
            UpstreamProtocol::Http2 => true,
        }
    }

    pub(super) fn supports_upgrades(&self) -> bool {
        self.protocol != UpstreamProtocol::Http2
    }

    /// Opens a TCP connection only.
    pub(super) async fn open(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    pub(super) async fn connect(&self, version: RequiredVersion) -> io::Result<UpstreamConnection> {
        let stream = self.open().await?;
        let Some(tls) = &self.tls else {
            let is_http2 = self.protocol == UpstreamProtocol::Http2;
            return handshake(UpstreamStream::Plain(stream), is_http2).await;
        };
        let config = if version == RequiredVersion::Http1 { &tls.http1 } else { &tls.any };
        let stream = TlsConnector::from(config.clone()).connect(tls.name.clone(), stream).await?;
        let is_http2 = negotiated_http2(stream.get_ref().1.alpn_protocol())
            || (self.protocol == UpstreamProtocol::Http2 && version == RequiredVersion::Any);
        handshake(UpstreamStream::Tls(Box::new(stream)), is_http2).await
    }

    /// Converts a request to HTTP/1.1: a path, and a `Host`.
    pub(super) fn prepare_http1(&self, request: &mut Request<OutgoingBody>) {
        *request.version_mut() = Version::HTTP_11;
        if request.headers().contains_key(TE) {
            // `TE` must be named in `Connection` (RFC 9110, section 10.1.4).
            let is_upgrade = request.headers().contains_key(UPGRADE);
            let options = HeaderValue::from_static(if is_upgrade { "upgrade, te" } else { "te" });
            request.headers_mut().insert(CONNECTION, options);
        }
        if !request.headers().contains_key(HOST) {
            let authority = request.uri().authority().unwrap_or(&self.authority).as_str();
            if let Ok(host) = HeaderValue::from_str(authority) {
                request.headers_mut().insert(HOST, host);
            }
        }
        if request.uri().authority().is_some() {
            let path = request.uri().path_and_query().cloned();
            *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
        }
    }

    /// Converts a request to HTTP/2: scheme and authority are part of the URI.
    pub(super) fn prepare_http2(&self, request: &mut Request<OutgoingBody>) {
        *request.version_mut() = Version::HTTP_2;
        // The request may have been prepared for HTTP/1.1 before, and handed back.
        request.headers_mut().remove(CONNECTION);
        let host = request.headers_mut().remove(HOST);
        let host = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.authority = host.or(parts.authority).or_else(|| Some(self.authority.clone()));
        parts.scheme = Some(if self.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP });
        parts.path_and_query.get_or_insert_with(|| http::uri::PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    }

    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }
}

async fn handshake(stream: UpstreamStream, is_http2: bool) -> io::Result<UpstreamConnection> {
    let io = TokioIo::new(stream);
    if !is_http2 {
        let (sender, connection) = http1::handshake(io).await.map_err(io::Error::other)?;
        return Ok(UpstreamConnection::Http1(Box::new(Http1Connection::new(sender, connection))));
    }
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .handshake(io)
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "an HTTP/2 connection to the upstream ended with an error");
        }
    });
    Ok(UpstreamConnection::Http2(Http2Connection::new(sender)))
}

/// A socket, with or without TLS.
#[derive(Debug)]
pub(crate) enum UpstreamStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for UpstreamStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
