//! [`Credentials`] and their sources. `Debug` shows no secrets.

mod chain;
mod context;

use std::error::Error;
use std::fmt;

use hapax_core::BoxFuture;

pub(crate) use chain::CredentialChain;
pub(crate) use context::process_context;

/// An access key with its secret, and a session token if it is temporary.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    access_key: String,
    secret_key: String,
    session_token: Option<String>,
}

impl Credentials {
    /// A long-lived key.
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self { access_key: access_key.into(), secret_key: secret_key.into(), session_token: None }
    }

    /// Adds the session token of a temporary key.
    #[must_use]
    pub fn with_session_token(mut self, token: impl Into<String>) -> Self {
        self.session_token = Some(token.into());
        self
    }

    pub(crate) fn access_key(&self) -> &str {
        &self.access_key
    }

    pub(crate) fn secret_key(&self) -> &str {
        &self.secret_key
    }

    pub(crate) fn session_token(&self) -> Option<&str> {
        self.session_token.as_deref()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// A source of credentials, such as the official SDK.
///
/// It is queried for every request and must cache what it loads.
pub trait CredentialsSource: fmt::Debug + Send + Sync + 'static {
    /// The credentials for a request that is sent now.
    fn credentials(&self) -> BoxFuture<'_, Result<Credentials, Box<dyn Error + Send + Sync>>>;
}

impl CredentialsSource for Credentials {
    fn credentials(&self) -> BoxFuture<'_, Result<Credentials, Box<dyn Error + Send + Sync>>> {
        Box::pin(async move { Ok(self.clone()) })
    }
}
