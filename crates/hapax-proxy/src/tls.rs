//! TLS on both sides: whom we are to clients, and whom we believe among upstreams.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::BuilderVerifierExt;

use super::options::{Protocol, Tls};
use crate::failure::{Code, Failure};

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The listener's certificate, which can be exchanged while it is in use.
#[derive(Debug)]
pub(super) struct Certificate {
    files: Tls,
    http2: bool,
    current: RwLock<Arc<ServerConfig>>,
}

impl Certificate {
    pub(super) fn read(files: &Tls, http2: bool) -> Result<Self, Failure> {
        let current = RwLock::new(server(files, http2)?);
        Ok(Self { files: files.clone(), http2, current })
    }

    /// Reads the files again. New connections get the new certificate; if it cannot be read the old one stays.
    pub(super) fn reload(&self) -> Result<(), Failure> {
        let next = server(&self.files, self.http2)?;
        *self.current.write() = next;
        tracing::info!("the certificate is read again");
        Ok(())
    }

    pub(super) fn current(&self) -> Arc<ServerConfig> {
        self.current.read().clone()
    }
}

/// Whether a TLS connection agreed on HTTP/2.
pub(super) fn agreed_on_http2(protocol: Option<&[u8]>) -> bool {
    protocol == Some(HTTP2)
}

fn server(files: &Tls, http2: bool) -> Result<Arc<ServerConfig>, Failure> {
    let chain = certificates(&files.certificate)?;
    let text = read(&files.key)?;
    let key = PrivateKeyDer::from_pem_slice(&text)
        .map_err(|error| unusable(&files.key, "holds no private key in PEM").because(error))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::new(Code::Failed, "TLS cannot be set up").because(error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&files.certificate, "does not go with its key").because(error))?;
    config.alpn_protocols = if http2 { vec![HTTP2.to_vec(), HTTP1.to_vec()] } else { vec![HTTP1.to_vec()] };
    Ok(Arc::new(config))
}

/// How upstreams are checked: by these roots, or by those of the platform.
pub(super) fn client(ca_file: Option<&Path>, protocol: Protocol) -> Result<Arc<ClientConfig>, Failure> {
    let failed = |error| Failure::new(Code::Failed, "TLS to upstreams cannot be set up").because(error);
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let mut config = match ca_file {
        None => builder.with_platform_verifier().map_err(failed)?.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(path)? {
                roots.add(root).map_err(|error| unusable(path, "holds no root").because(error))?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    config.alpn_protocols = match protocol {
        Protocol::Auto => vec![HTTP2.to_vec(), HTTP1.to_vec()],
        Protocol::Http1 => vec![HTTP1.to_vec()],
        Protocol::Http2 => vec![HTTP2.to_vec()],
    };
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let text = read(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| unusable(path, "is no PEM").because(error))?;
    if chain.is_empty() {
        return Err(unusable(path, "holds no certificate in PEM"));
    }
    Ok(chain)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| unusable(path, "cannot be read").because(error))
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::new(Code::InputInvalid, format!("{} {why}", path.display()))
        .hint("give a certificate with its chain, and its private key, both in PEM")
}
