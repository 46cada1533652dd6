//! From an address to a connection: name, TCP, TLS, and which version of HTTP.

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

use super::Needs;
use super::link::{Http1, Http2, Link};
use super::outgoing::Outgoing;
use crate::failure::{Code, Failure};
use crate::proxy::options::{Protocol, UpstreamOptions};
use crate::proxy::tls::{self, agreed_on_http2};

/// How often a silent HTTP/2 connection is asked whether it is alive, and how long it may think about it.
const PING: Duration = Duration::from_secs(20);
const PONG: Duration = Duration::from_secs(10);

/// Where an upstream is, and how it is spoken to.
#[derive(Debug)]
pub(super) struct Target {
    host: String,
    port: u16,
    authority: Authority,
    protocol: Protocol,
    tls: Option<TargetTls>,
}

#[derive(Debug)]
struct TargetTls {
    name: ServerName<'static>,
    any: Arc<ClientConfig>,
    /// For connections that will change their protocol.
    http1: Arc<ClientConfig>,
}

impl Target {
    /// The targets of all addresses. There is at least one.
    pub(super) fn all(addresses: &[Uri], options: &UpstreamOptions) -> Result<Vec<Self>, Failure> {
        if addresses.is_empty() {
            return Err(Failure::new(Code::InputInvalid, "there is no upstream")
                .hint("name one, such as http://127.0.0.1:3000"));
        }
        let is_encrypted = addresses.iter().any(|address| address.scheme() == Some(&Scheme::HTTPS));
        let ca_file = options.ca_file.as_deref();
        let tls = if is_encrypted {
            Some((tls::client(ca_file, options.protocol)?, tls::client(ca_file, Protocol::Http1)?))
        } else {
            None
        };
        addresses.iter().map(|address| Self::new(address, options.protocol, tls.as_ref())).collect()
    }

    fn new(
        address: &Uri,
        protocol: Protocol,
        tls: Option<&(Arc<ClientConfig>, Arc<ClientConfig>)>,
    ) -> Result<Self, Failure> {
        let refused = |why: &str| {
            Failure::new(Code::InputInvalid, format!("the upstream {address} {why}"))
                .hint("write it as http://HOST:PORT or https://HOST:PORT, without a path")
        };
        let authority = address.authority().ok_or_else(|| refused("names no host"))?.clone();
        if authority.as_str().contains('@') {
            return Err(refused("holds credentials, which nobody would send"));
        }
        if !matches!(address.path(), "" | "/") || address.query().is_some() {
            return Err(refused("has a path, and requests keep theirs"));
        }
        let (is_tls, port) = match address.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(refused("is neither http nor https")),
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = match tls.filter(|_| is_tls) {
            None => None,
            Some((any, http1)) => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|error| refused("has a host that no certificate can name").because(error))?;
                Some(TargetTls { name, any: any.clone(), http1: http1.clone() })
            }
        };
        Ok(Self { host, port: authority.port_u16().unwrap_or(port), authority, protocol, tls })
    }

    /// Whether a new connection will be shared; with TLS, judged by the one before.
    pub(super) fn speaks_http2(&self, did: bool) -> bool {
        match self.protocol {
            Protocol::Auto => did && self.tls.is_some(),
            Protocol::Http1 => false,
            Protocol::Http2 => true,
        }
    }

    pub(super) fn can_change_protocol(&self) -> bool {
        self.protocol != Protocol::Http2
    }

    /// Opens a socket and nothing more.
    pub(super) async fn open(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    pub(super) async fn connect(&self, needs: Needs) -> io::Result<Link> {
        let stream = self.open().await?;
        let Some(tls) = &self.tls else {
            let is_http2 = self.protocol == Protocol::Http2;
            return shake_hands(Stream::Plain(stream), is_http2).await;
        };
        let config = if needs == Needs::Http1 { &tls.http1 } else { &tls.any };
        let stream = TlsConnector::from(config.clone()).connect(tls.name.clone(), stream).await?;
        let is_http2 = agreed_on_http2(stream.get_ref().1.alpn_protocol())
            || (self.protocol == Protocol::Http2 && needs == Needs::Any);
        shake_hands(Stream::Tls(Box::new(stream)), is_http2).await
    }

    /// Gives a request the form that it has on an HTTP/1.1 connection: a path, and a `Host`.
    pub(super) fn address_http1(&self, request: &mut Request<Outgoing>) {
        *request.version_mut() = Version::HTTP_11;
        if request.headers().contains_key(TE) {
            // What is offered on one connection is said to be of that connection (RFC 9110, section 10.1.4).
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

    /// Gives a request the form that it has on an HTTP/2 connection: everything is in its address.
    pub(super) fn address_http2(&self, request: &mut Request<Outgoing>) {
        *request.version_mut() = Version::HTTP_2;
        // It was offered to a connection of HTTP/1.1 before, and handed back.
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

async fn shake_hands(stream: Stream, is_http2: bool) -> io::Result<Link> {
    let io = TokioIo::new(stream);
    if !is_http2 {
        let (sender, connection) = http1::handshake(io).await.map_err(io::Error::other)?;
        return Ok(Link::Http1(Box::new(Http1::new(sender, connection))));
    }
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .handshake(io)
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "an HTTP/2 connection to the upstream ended with an error");
        }
    });
    Ok(Link::Http2(Http2::new(sender)))
}

/// A socket, encrypted or not.
#[derive(Debug)]
pub(in crate::proxy) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
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
