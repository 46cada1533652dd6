//! A database with Redis in front of it as a fast tier of finished records.

use std::fmt;
use std::sync::Arc;

use hapax::Tiers;
use hapax_core::Store;
use hapax_store_redis::RedisFacts;

use super::redis::RedisUrl;
use super::{Access, StoreUrl};
use crate::failure::{Code, Failure};

/// The URLs of the database, which decides claims, and of the fast tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TiersUrl {
    pub(crate) store: StoreUrl,
    fast: RedisUrl,
}

impl TiersUrl {
    /// `fast` in front of `store`.
    pub(crate) fn parse(store: StoreUrl, fast: &str) -> Result<Self, Failure> {
        let invalid = |message: String| Failure::new(Code::StoreUrlInvalid, message);
        if store.directory().is_some() || matches!(store, StoreUrl::Memory | StoreUrl::Redis(_)) {
            return Err(invalid(format!("{store} supports no fast tier")).hint(
                "remove `fast`: it is for databases; `cache_bytes` is a cache in memory in front of any store",
            ));
        }
        match RedisUrl::parse_facts(fast) {
            Ok(fast) => Ok(Self { store, fast }),
            Err(why) => Err(invalid(format!("the fast tier: {why}")).hint(
                "write redis://HOST:PORT?prefix=NAME:, or rediss:// for TLS; see docs/guide/postgres.md",
            )),
        }
    }

    /// Whether one of them is on another machine and used without TLS.
    pub(crate) fn is_unencrypted(&self) -> bool {
        self.store.is_unencrypted() || self.fast.is_unencrypted()
    }

    pub(crate) async fn open(&self, access: Access) -> Result<Arc<dyn Store>, Failure> {
        self.before(Box::pin(self.store.open(access)).await?).await
    }

    pub(crate) async fn open_or_create(&self) -> Result<Arc<dyn Store>, Failure> {
        self.before(Box::pin(self.store.open_or_create()).await?).await
    }

    /// Redis may be unavailable: then all calls go to the database.
    async fn before(&self, store: Arc<dyn Store>) -> Result<Arc<dyn Store>, Failure> {
        let facts = RedisFacts::connect(self.fast.as_str()).await;
        let facts = facts.map_err(|error| Failure::store(error, format!("cannot use {}", self.fast)))?;
        Ok(Arc::new(Tiers::new(Arc::new(facts), store)))
    }
}

impl fmt::Display for TiersUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} behind {}", self.store, self.fast)
    }
}
