//! A Redis server as a store: its URL, shown without user and password, and how it is opened.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_redis::{OpenError, Options, RedisFacts, RedisStore};

use super::typed::{Typed, cause, is_elsewhere};

/// The URL of a Redis server.
pub(crate) type RedisUrl = Typed<Options>;

impl RedisUrl {
    /// Reads what was typed; otherwise what is wrong with it, without repeating it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        Self::read(url, Options::from_url(url))
    }

    /// The same of a server that stands in front of another store.
    pub(crate) fn parse_facts(url: &str) -> Result<Self, String> {
        Self::read(url, RedisFacts::options(url))
    }

    /// Whether somebody on the way to it could read along.
    pub(crate) fn is_in_clear(&self) -> bool {
        !self.typed().starts_with("rediss") && is_elsewhere(&self.options.address())
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
    matches!(cause(error), Some(OpenError::Missing { .. }))
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.typed().split(':').next().unwrap_or("redis");
        write!(f, "{scheme}://{}?prefix={}", self.options.address(), self.options.key_prefix())
    }
}
