//! [`Credentials`]: who signs, and where that is found out. Secrets are not shown by `Debug`.

mod ambient;

use std::error::Error;
use std::fmt;

use hapax_core::BoxFuture;

pub(crate) use ambient::Ambient;

/// An access key with its secret, and a session token where it is a temporary one.
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

    /// The same as a temporary key.
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

/// Somebody who knows the credentials to use now, such as the official SDK.
///
/// It is asked for every request and keeps what it knows itself.
pub trait CredentialsSource: fmt::Debug + Send + Sync + 'static {
    /// The credentials to use now.
    fn credentials(&self) -> BoxFuture<'_, Result<Credentials, Box<dyn Error + Send + Sync>>>;
}

impl CredentialsSource for Credentials {
    fn credentials(&self) -> BoxFuture<'_, Result<Credentials, Box<dyn Error + Send + Sync>>> {
        Box::pin(async move { Ok(self.clone()) })
    }
}
