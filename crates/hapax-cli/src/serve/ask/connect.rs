//! One connection for one question, plain or with TLS.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::failure::{Code, Failure};

/// Why a question has no answer. Never what was asked: the head of a caller holds credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unasked {
    Url,
    Connection,
    Answer,
    Time,
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url => "the URL cannot be asked",
            Self::Connection => "no connection",
            Self::Answer => "the answer was broken or too large",
            Self::Time => "no answer in time",
        })
    }
}

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    tls: TlsConnector,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    pub(super) fn new() -> Result<Self, Failure> {
        let failed = |error| Failure::new(Code::Failed, "cannot set up TLS").because(error);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_platform_verifier())
            .map_err(failed)?
            .with_no_client_auth();
        Ok(Self { tls: Arc::new(config).into() })
    }

    pub(super) async fn send(
        &self,
        url: &Uri,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Unasked> {
        let is_tls = url.scheme_str() == Some("https");
        let host = url.host().ok_or(Unasked::Url)?.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let stream = TcpStream::connect((host, port)).await.map_err(|_| Unasked::Connection)?;
        if !is_tls {
            return exchange(TokioIo::new(stream), request).await;
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| Unasked::Url)?;
        let stream = self.tls.connect(name, stream).await.map_err(|_| Unasked::Connection)?;
        exchange(TokioIo::new(stream), request).await
    }
}

async fn exchange<I>(io: I, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Unasked>
where
    I: Read + Write + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake(io).await;
    let (mut sender, connection) = handshake.map_err(|_| Unasked::Connection)?;
    // It ends with the answer: the sender is gone then.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(|_| Unasked::Answer)
}
