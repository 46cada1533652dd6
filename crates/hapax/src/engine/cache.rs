//! A bounded cache of finished records in front of any store.
//!
//! It holds durable facts only and is never a source of "absent": for what it does not hold, the store is asked.
//!
//! A fact is true until its record is deleted or its retention is over. Where every deletion goes through this process,
//! the store counts them and a fact lives as long as its record. Elsewhere another process may delete the record, and a
//! fact lives for a minute at most.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Caching, Deletions, Fingerprint, RecordId, Recorded};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use tokio::time::Instant;

use crate::policy::SPAN_MAX;

/// How long a fact is answered from memory where other processes may delete its record.
const SHARED_AGE_MAX: Duration = Duration::from_secs(60);

/// What an entry takes beside its outcome, roughly.
const FACT_BYTES: u64 = 200;
/// The usual size of an entry, from which the cache estimates how many it will hold.
const FACT_BYTES_USUAL: u64 = 1024;
/// How many bytes one part of the cache has at least, and so the largest fact that is certain to be kept.
const PART_BYTES_MIN: u64 = 2 << 20;
/// The most parts: each has a lock of its own.
const PARTS_MAX: u64 = 256;

#[derive(Debug)]
pub(crate) struct Facts {
    cache: Option<FactCache>,
    /// How often records were deleted as far as this process knows.
    deletions: Arc<Deletions>,
    age_max: Duration,
}

type FactCache = Cache<RecordId, Arc<Fact>, ByBytes>;

#[derive(Debug)]
struct Fact {
    fingerprint: Fingerprint,
    recorded: Recorded,
    good_until: Instant,
    /// The record's count of deletions before the store returned the fact.
    deletions: u64,
}

/// A moment before a call to the store. What the store answers is true at that moment or later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    deletions: u64,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<RecordId, Arc<Fact>> for ByBytes {
    fn weight(&self, _id: &RecordId, fact: &Arc<Fact>) -> u64 {
        FACT_BYTES + fact.recorded.len() as u64
    }
}

/// What memory holds about an operation.
pub(crate) enum Recalled {
    Replay(Recorded),
    Mismatch,
}

impl Facts {
    /// A cache of at most `bytes_max` in front of a store; none when that is zero or the store needs none.
    pub(crate) fn new(bytes_max: u64, caching: Caching) -> Self {
        let (is_needed, deletions, age_max) = match caching {
            Caching::Needless => (false, Arc::default(), Duration::ZERO),
            Caching::Owned(deletions) => (true, deletions, SPAN_MAX),
            _ => (true, Arc::default(), SHARED_AGE_MAX),
        };
        let cache = (is_needed && bytes_max > 0).then(|| cache(bytes_max));
        Self { cache, deletions, age_max }
    }

    pub(crate) fn recall(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Recalled> {
        let fact = self.cache.as_ref()?.get(id)?;
        if fact.good_until <= Instant::now() || fact.deletions != self.deletions.of(id) {
            return None;
        }
        match fact.fingerprint.matches(fingerprint)? {
            true => Some(Recalled::Replay(fact.recorded.clone())),
            false => Some(Recalled::Mismatch),
        }
    }

    /// Now, before the store is asked about this record.
    pub(crate) fn moment(&self, id: &RecordId) -> Moment {
        Moment { at: Instant::now(), deletions: self.deletions.of(id) }
    }

    /// Keeps a fact that the store has made durable and returns for at least `remaining` from `since`.
    pub(crate) fn keep(
        &self,
        id: RecordId,
        fingerprint: Fingerprint,
        recorded: &Recorded,
        since: Moment,
        remaining: Duration,
    ) {
        if let Some(cache) = &self.cache {
            let good_until = since.at + remaining.min(self.age_max);
            let deletions = since.deletions;
            cache.insert(
                id,
                Arc::new(Fact { fingerprint, recorded: recorded.clone(), good_until, deletions }),
            );
        }
    }

    /// What the store returned of a record, with the bytes that are held already where they are the same: requests that
    /// asked the store at the same time share one copy.
    pub(crate) fn share(&self, id: &RecordId, recorded: Recorded) -> Recorded {
        let held = self.cache.as_ref().and_then(|cache| cache.get(id));
        held.filter(|fact| fact.recorded == recorded).map_or(recorded, |fact| fact.recorded.clone())
    }

    /// Forgets a record that was deleted or settled, and ignores what calls that are under way return of it.
    pub(crate) fn forget(&self, id: &RecordId) {
        if let Some(cache) = &self.cache {
            self.deletions.count(id);
            cache.remove(id);
        }
    }
}

fn cache(bytes_max: u64) -> FactCache {
    let parts = (bytes_max / PART_BYTES_MIN).clamp(1, PARTS_MAX);
    // The cache takes powers of two and would take the next larger one.
    let parts = 1_usize << parts.ilog2();
    let entries = usize::try_from(bytes_max / FACT_BYTES_USUAL).unwrap_or(usize::MAX).max(16);
    let options = OptionsBuilder::new()
        .shards(parts)
        .estimated_items_capacity(entries)
        .weight_capacity(bytes_max)
        .build()
        .expect("both capacities are given");
    Cache::with_options(options, ByBytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

#[cfg(test)]
mod tests {
    use hapax_core::{Class, Format, Scope, ScopedKey};

    use super::*;

    /// Requests that asked the store together each have a copy of their own.
    #[tokio::test]
    async fn replays_of_one_record_share_the_bytes_that_are_held() {
        let facts = Facts::new(1 << 20, Caching::Shared);
        let id = ScopedKey::new(Scope::new("pay"), &hapax_core::Key::new("k").unwrap()).id;
        let copy = |text: &str| Recorded::new(Class::Success, Format::HTTP, text.to_owned());
        let first = facts.share(&id, copy("paid"));
        let fingerprint = Fingerprint::empty();
        facts.keep(id, fingerprint, &first, facts.moment(&id), Duration::from_secs(60));
        let second = facts.share(&id, copy("paid"));
        assert_eq!(second.payload.as_ptr(), first.payload.as_ptr());
        let other = facts.share(&id, copy("paid twice"));
        assert_eq!(other.payload, "paid twice");
    }
}
