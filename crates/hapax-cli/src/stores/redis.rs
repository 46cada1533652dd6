//! A Redis server as a store: its URL, which is printed without user and password, and opening.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_redis::{OpenError, Options, RedisFacts, RedisStore};

use super::server_url::{ServerUrl, cause, is_remote};

/// The URL of a Redis server.
pub(crate) type RedisUrl = ServerUrl<Options>;

impl RedisUrl {
    /// Parses a URL. Errors do not repeat it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        Self::read(url, Options::from_url(url))
    }

    /// Parses the URL of a fast tier in front of another store.
    pub(crate) fn parse_facts(url: &str) -> Result<Self, String> {
        Self::read(url, RedisFacts::options(url))
    }

    /// Whether it is on another machine and used without TLS.
    pub(crate) fn is_unencrypted(&self) -> bool {
        !self.as_str().starts_with("rediss") && is_remote(&self.options.address())
    }

    /// Connects. A missing store is not created: the prefix may be misspelled.
    pub(crate) async fn open(&self) -> Result<RedisStore, StoreError> {
        self.options.clone().existing().connect().await
    }

    /// Connects, and creates the store if it does not exist.
    pub(crate) async fn open_or_create(&self) -> Result<RedisStore, StoreError> {
        self.options.clone().connect().await
    }
}

/// Whether the store does not exist.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(cause(error), Some(OpenError::Missing { .. }))
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.as_str().split(':').next().unwrap_or("redis");
        write!(f, "{scheme}://{}?prefix={}", self.options.address(), self.options.key_prefix())
    }
}
