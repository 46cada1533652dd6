//! New connections, plain or with TLS, each with a [`ReuseMark`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::TryFutureExt as _;
use futures_util::future::MapOk;
use http::{Extensions, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use pin_project_lite::pin_project;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tower_service::Service;

type TcpConnector = legacy::connect::HttpConnector;

/// Connects in plain text.
pub(super) type HttpConnector = MarkingConnector<TcpConnector>;
/// Connects with TLS and verifies certificates as the platform does.
pub(super) type HttpsConnector = MarkingConnector<hyper_rustls::HttpsConnector<TcpConnector>>;

pub(super) fn http_connector() -> HttpConnector {
    MarkingConnector { inner: tcp_connector() }
}

pub(super) fn https_connector() -> Result<HttpsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier())?
        .with_no_client_auth();
    let mut tcp = tcp_connector();
    tcp.enforce_http(false);
    let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1();
    Ok(MarkingConnector { inner: builder.wrap_connector(tcp) })
}

fn tcp_connector() -> TcpConnector {
    let mut connector = TcpConnector::new();
    // A request is written as a whole, so Nagle's algorithm would only delay it.
    connector.set_nodelay(true);
    connector
}

/// Whether a connection has had a response before. Shared with the responses and the errors of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct ReuseMark(Arc<AtomicBool>);

impl ReuseMark {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the error is of a connection that has had a response before.
    pub(super) fn is_set_in(error: &legacy::Error) -> bool {
        let mut extensions = Extensions::new();
        if let Some(connected) = error.connect_info() {
            connected.get_extras(&mut extensions);
        }
        extensions.get::<Self>().is_some_and(|mark| mark.0.load(Ordering::Relaxed))
    }
}

/// Gives each new connection its mark.
#[derive(Clone, Debug)]
pub(super) struct MarkingConnector<C> {
    inner: C,
}

impl<C> Service<Uri> for MarkingConnector<C>
where
    C: Service<Uri>,
{
    type Response = MarkedConnection<C::Response>;
    type Error = C::Error;
    type Future = MapOk<C::Future, fn(C::Response) -> MarkedConnection<C::Response>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        self.inner.call(url).map_ok(|io| MarkedConnection { io, mark: ReuseMark::default() })
    }
}

pin_project! {
    /// A connection with its mark.
    pub(super) struct MarkedConnection<I> {
        #[pin]
        io: I,
        mark: ReuseMark,
    }
}

impl<I: Connection> Connection for MarkedConnection<I> {
    fn connected(&self) -> Connected {
        self.io.connected().extra(self.mark.clone())
    }
}

impl<I: Read> Read for MarkedConnection<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.project().io.poll_read(cx, buffer)
    }
}

impl<I: Write> Write for MarkedConnection<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.project().io.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        self.project().io.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.project().io.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.project().io.poll_shutdown(cx)
    }
}
