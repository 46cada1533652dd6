//! A store with Redis in front of it, which knows what is finished.

use std::fmt;
use std::sync::Arc;

use hapax::Tiers;
use hapax_core::Store;
use hapax_store_redis::RedisFacts;

use super::redis::RedisUrl;
use super::{Access, StoreUrl};
use crate::failure::{Code, Failure};

/// Two URLs: who decides, and who knows.
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
            return Err(invalid(format!("{store} takes no fast tier")).hint(
                "leave `fast` out: it spares a database calls; `cache_bytes` answers from memory before any store",
            ));
        }
        match RedisUrl::parse_facts(fast) {
            Ok(fast) => Ok(Self { store, fast }),
            Err(why) => Err(invalid(format!("the fast tier: {why}")).hint(
                "write redis://HOST:PORT?prefix=NAME:, or rediss:// for TLS; see docs/guide/postgres.md",
            )),
        }
    }

    /// Whether somebody on the way to one of both could read along.
    pub(crate) fn is_in_clear(&self) -> bool {
        self.store.is_in_clear() || self.fast.is_in_clear()
    }

    pub(crate) async fn open(&self, access: Access) -> Result<Arc<dyn Store>, Failure> {
        self.before(Box::pin(self.store.open(access)).await?).await
    }

    pub(crate) async fn open_or_make(&self) -> Result<Arc<dyn Store>, Failure> {
        self.before(Box::pin(self.store.open_or_make()).await?).await
    }

    /// Redis need not be there: without it everything is as it is without Redis.
    async fn before(&self, store: Arc<dyn Store>) -> Result<Arc<dyn Store>, Failure> {
        let facts = RedisFacts::connect(self.fast.typed()).await;
        let facts = facts.map_err(|error| Failure::store(error, format!("cannot use {}", self.fast)))?;
        Ok(Arc::new(Tiers::new(Arc::new(facts), store)))
    }
}

impl fmt::Display for TiersUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} behind {}", self.store, self.fast)
    }
}
