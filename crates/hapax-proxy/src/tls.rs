//! TLS on both sides: the listener's certificate, and the roots that upstreams are verified with.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::error::{BoxError, SetupError};
use crate::options::{TlsFiles, UpstreamProtocol};

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The listener's certificate, which can be replaced while it is in use.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: TlsFiles,
    http2: bool,
    current: RwLock<Arc<ServerConfig>>,
}

impl Certificate {
    pub(crate) fn read(files: &TlsFiles, http2: bool) -> Result<Self, SetupError> {
        let current = RwLock::new(server_config(files, http2)?);
        Ok(Self { files: files.clone(), http2, current })
    }

    /// Reads the files again, for new connections. On an error the old certificate stays.
    pub(crate) fn reload(&self) -> Result<(), SetupError> {
        let next = server_config(&self.files, self.http2)?;
        *self.current.write() = next;
        tracing::info!("certificate reloaded");
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.current.read().clone()
    }
}

/// Whether ALPN negotiated HTTP/2.
pub(crate) fn negotiated_http2(protocol: Option<&[u8]>) -> bool {
    protocol == Some(HTTP2)
}

fn server_config(files: &TlsFiles, http2: bool) -> Result<Arc<ServerConfig>, SetupError> {
    let chain = certificates(&files.certificate)?;
    let pem = read(&files.key)?;
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|error| unusable(&files.key, "holds no private key in PEM", error))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(tls_error)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&files.certificate, "does not match its key", error))?;
    config.alpn_protocols = if http2 { vec![HTTP2.to_vec(), HTTP1.to_vec()] } else { vec![HTTP1.to_vec()] };
    Ok(Arc::new(config))
}

/// Verifies upstreams with these roots, or with the platform's.
pub(crate) fn client_config(
    ca_file: Option<&Path>,
    protocol: UpstreamProtocol,
) -> Result<Arc<ClientConfig>, SetupError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(tls_error)?;
    let mut config = match ca_file {
        None => builder.with_platform_verifier().map_err(tls_error)?.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(path)? {
                roots.add(root).map_err(|error| unusable(path, "holds no root certificate", error))?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    config.alpn_protocols = match protocol {
        UpstreamProtocol::Auto => vec![HTTP2.to_vec(), HTTP1.to_vec()],
        UpstreamProtocol::Http1 => vec![HTTP1.to_vec()],
        UpstreamProtocol::Http2 => vec![HTTP2.to_vec()],
    };
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let pem = read(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|error| unusable(path, "is no valid PEM", error))?;
    if chain.is_empty() {
        let problem = "holds no certificate in PEM";
        return Err(SetupError::TlsFile { file: path.to_owned(), problem, source: None });
    }
    Ok(chain)
}

fn read(path: &Path) -> Result<Vec<u8>, SetupError> {
    fs::read(path).map_err(|error| unusable(path, "cannot be read", error))
}

fn tls_error(error: rustls::Error) -> SetupError {
    SetupError::Tls(error.into())
}

fn unusable(path: &Path, problem: &'static str, source: impl Into<BoxError>) -> SetupError {
    SetupError::TlsFile { file: path.to_owned(), problem, source: Some(source.into()) }
}
