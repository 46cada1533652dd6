//! Why a listener or a forwarder cannot be set up.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use http::Uri;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Why a [`Listener`](crate::Listener) or a [`Forward`](crate::Forward) cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A file with certificates or a key is missing or unusable.
    #[error("{} {problem}", .file.display())]
    TlsFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, as the predicate of a sentence about the file.
        problem: &'static str,
        /// Why, where another error tells.
        source: Option<BoxError>,
    },
    /// TLS cannot be configured.
    #[error("cannot set up TLS")]
    Tls(#[source] BoxError),
    /// There is no address to forward to.
    #[error("no upstream configured")]
    NoUpstream,
    /// An upstream's address is unusable.
    #[error("the upstream {address} {problem}")]
    Upstream {
        /// The address.
        address: Uri,
        /// What is wrong with it, as the predicate of a sentence about the address.
        problem: &'static str,
        /// Why, where another error tells.
        source: Option<BoxError>,
    },
}

impl SetupError {
    pub(crate) fn upstream(address: &Uri, problem: &'static str) -> Self {
        Self::Upstream { address: address.clone(), problem, source: None }
    }
}
