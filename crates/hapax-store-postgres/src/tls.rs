//! TLS with rustls, which always verifies the server's certificate.

use crate::config::Options;
use crate::error::OpenError;

/// The driver's TLS connector.
#[cfg(feature = "tls")]
pub(crate) type Tls = tokio_postgres_rustls::MakeRustlsConnect;

/// The driver's TLS connector: none in this build.
#[cfg(not(feature = "tls"))]
pub(crate) type Tls = tokio_postgres::NoTls;

#[cfg(not(feature = "tls"))]
pub(crate) fn tls(_options: &Options) -> Result<Tls, OpenError> {
    Ok(tokio_postgres::NoTls)
}

#[cfg(feature = "tls")]
pub(crate) fn tls(options: &Options) -> Result<Tls, OpenError> {
    use std::sync::Arc;

    use rustls::{ClientConfig, RootCertStore};
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;
    use rustls_platform_verifier::BuilderVerifierExt;
    use tokio_postgres::config::SslMode;

    let failed = |why: &dyn std::fmt::Display| OpenError::Certificate { why: why.to_string() };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let is_plain = options.config.get_ssl_mode() == SslMode::Disable;
    let config = match &options.ca {
        // The system's authorities, unless TLS is off.
        None if !is_plain => builder.with_platform_verifier().map_err(|error| failed(&error))?,
        ca => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(ca.as_deref().unwrap_or_default()) {
                let certificate = certificate.map_err(|error| failed(&error))?;
                roots.add(certificate).map_err(|error| failed(&error))?;
            }
            if ca.is_some() && roots.is_empty() {
                return Err(failed(&"the PEM text holds no certificate"));
            }
            builder.with_root_certificates(roots)
        }
    };
    Ok(Tls::new(config.with_no_client_auth()))
}
