//! Certificates and TLS clients for tests. The tests of `hapax-cli` include this file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hapax_proxy::TlsFiles;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::rig::Rig;

pub(crate) fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hapax-proxy/tests/it/pem").join(name)
}

pub(crate) fn tls_files(name: &str) -> TlsFiles {
    TlsFiles { certificate: pem(&format!("{name}.pem")), key: pem(&format!("{name}.key")) }
}

/// A TLS connection to the proxy that offers this protocol.
pub(crate) async fn connect_tls(rig: &Rig, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, rig.connect().await).await.unwrap()
}

/// Accepts TLS connections of an origin with the certificate `first`.
pub(crate) fn acceptor(protocols: &[&[u8]]) -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_file(pem("first.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(pem("first.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

pub(crate) type Http2Sender = http2::SendRequest<Full<Bytes>>;

/// An HTTP/2 client on this connection.
pub(crate) async fn http2_on(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Http2Sender {
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(io)).await.unwrap();
    tokio::spawn(connection);
    sender
}
