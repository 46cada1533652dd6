//! A bounded cache of finished records in front of any store.
//!
//! It holds durable facts only and is never a source of "absent": what it does not know, the store is asked.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Fingerprint, RecordId, Recorded};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::Instant;

/// How long a fact is answered from memory. A record that another process deletes is replayed at most this much
/// longer.
const FACT_AGE_MAX: Duration = Duration::from_secs(60);

/// What an entry takes beside its outcome, roughly.
const FACT_BYTES: u64 = 200;

#[derive(Debug)]
pub(crate) struct Facts {
    cache: Option<Cache<RecordId, Arc<Fact>, ByBytes>>,
}

#[derive(Debug)]
struct Fact {
    fingerprint: Fingerprint,
    recorded: Recorded,
    good_until: Instant,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<RecordId, Arc<Fact>> for ByBytes {
    fn weight(&self, _id: &RecordId, fact: &Arc<Fact>) -> u64 {
        FACT_BYTES + fact.recorded.len() as u64
    }
}

/// What the cache knows about a request.
pub(crate) enum Known {
    Replay(Recorded),
    Mismatch,
}

impl Facts {
    /// A cache of at most `bytes_max`; none when that is zero.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let entries = usize::try_from(bytes_max / 1024).unwrap_or(usize::MAX).max(16);
        Self { cache: (bytes_max > 0).then(|| Cache::with_weighter(entries, bytes_max, ByBytes)) }
    }

    pub(crate) fn ask(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Known> {
        let fact = self.cache.as_ref()?.get(id)?;
        if fact.good_until <= Instant::now() {
            return None;
        }
        match fact.fingerprint.matches(fingerprint)? {
            true => Some(Known::Replay(fact.recorded.clone())),
            false => Some(Known::Mismatch),
        }
    }

    /// Keeps a fact that the store has made durable and answers with for at least `remaining` from `since`.
    pub(crate) fn keep(
        &self,
        id: RecordId,
        fingerprint: Fingerprint,
        recorded: &Recorded,
        since: Instant,
        remaining: Duration,
    ) {
        if let Some(cache) = &self.cache {
            let good_until = since + remaining.min(FACT_AGE_MAX);
            cache.insert(id, Arc::new(Fact { fingerprint, recorded: recorded.clone(), good_until }));
        }
    }

    pub(crate) fn forget(&self, id: &RecordId) {
        if let Some(cache) = &self.cache {
            cache.remove(id);
        }
    }
}
