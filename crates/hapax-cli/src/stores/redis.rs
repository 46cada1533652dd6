//! A Redis server as a store: its URL, shown without user and password, and how it is opened.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_redis::{OpenError, Options, RedisStore};

/// The URL of a Redis server.
#[derive(Clone)]
pub(crate) struct RedisUrl {
    typed: String,
    options: Options,
}

impl RedisUrl {
    /// Reads what was typed; otherwise what is wrong with it, without repeating it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        match Options::from_url(url) {
            Ok(options) => Ok(Self { typed: url.to_owned(), options }),
            Err(error) => Err(match open_error(&error) {
                Some(OpenError::Url { why }) => why.clone(),
                _ => error.to_string(),
            }),
        }
    }

    /// Connects. A store under a mistyped prefix is not made, unless somebody runs operations with it.
    pub(crate) async fn open(&self) -> Result<RedisStore, StoreError> {
        self.options.clone().existing().connect().await
    }

    /// Connects, and begins a store where there is none.
    pub(crate) async fn open_or_make(&self) -> Result<RedisStore, StoreError> {
        self.options.clone().connect().await
    }
}

/// Whether there is nothing under the URL.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(open_error(error), Some(OpenError::Missing { .. }))
}

fn open_error(error: &StoreError) -> Option<&OpenError> {
    std::error::Error::source(error).and_then(|cause| cause.downcast_ref())
}

impl PartialEq for RedisUrl {
    fn eq(&self, other: &Self) -> bool {
        self.typed == other.typed
    }
}

impl Eq for RedisUrl {}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.typed.split(':').next().unwrap_or("redis");
        write!(f, "{scheme}://{}?prefix={}", self.options.address(), self.options.key_prefix())
    }
}
