//! New connections, plain or with TLS. What TLS needs is read when it is first needed: a machine without trusted
//! certificates can still be asked in plain HTTP.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Peer, Unanswered};

/// Makes connections.
#[derive(Default)]
pub(super) struct Connector {
    tls: OnceLock<Option<TlsConnector>>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    pub(super) async fn connect(&self, peer: &Peer) -> Result<SendRequest<Full<Bytes>>, Unanswered> {
        let host = peer.authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = peer.authority.port_u16().unwrap_or(if peer.is_tls { 443 } else { 80 });
        let stream = TcpStream::connect((host, port)).await.map_err(|_| Unanswered::Connection)?;
        // A request is written as a whole; waiting for more to send only delays it.
        let _unsupported = stream.set_nodelay(true);
        if !peer.is_tls {
            return shake_hands(TokioIo::new(stream)).await;
        }
        let tls = self.tls.get_or_init(trusting_the_platform).as_ref().ok_or(Unanswered::Tls)?;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| Unanswered::Url)?;
        let stream = tls.connect(name, stream).await.map_err(|error| {
            tracing::debug!(%error, "a TLS handshake failed");
            Unanswered::Connection
        })?;
        shake_hands(TokioIo::new(stream)).await
    }
}

fn trusting_the_platform() -> Option<TlsConnector> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier());
    match config {
        Ok(config) => Some(Arc::new(config.with_no_client_auth()).into()),
        Err(error) => {
            tracing::error!(%error, "cannot set up TLS");
            None
        }
    }
}

async fn shake_hands<I>(io: I) -> Result<SendRequest<Full<Bytes>>, Unanswered>
where
    I: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(io).await.map_err(|_| Unanswered::Connection)?;
    // It ends when the sender is gone, or when the other side hangs up.
    tokio::spawn(connection);
    Ok(sender)
}
