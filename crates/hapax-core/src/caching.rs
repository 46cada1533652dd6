//! [`Caching`]: how long an in-process cache in front of a store may keep its finished records.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::key::RecordId;

/// The number of counters of a store. One deletion invalidates one cache entry in 256.
const PARTS: usize = 256;

/// How long an in-process cache may answer with finished records of a store.
///
/// Such a cache holds recorded outcomes only. A miss goes to the store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Caching {
    /// No cache: the store answers from its own memory ([`Store::recall`](crate::Store::recall)).
    Needless,
    /// At most a minute: other processes share the store and may delete a record at any time.
    #[default]
    Shared,
    /// Until the end of a record's retention: every deletion goes through this store, which counts it here.
    Owned(Arc<Deletions>),
}

/// Deletion counters of a store that has a single owner process.
///
/// A cache reads the counter of a record before it queries the store, and keeps the value with the entry. When the
/// counter has changed since, the entry may be stale and the cache queries the store again.
pub struct Deletions([AtomicU64; PARTS]);

impl Deletions {
    /// All counters at zero.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; PARTS])
    }

    /// Counts the deletion of a record. The store calls this once no claim can find the record any more, and before it
    /// acknowledges the deletion.
    pub fn count(&self, id: &RecordId) {
        self.counter(id).fetch_add(1, Ordering::AcqRel);
    }

    /// The counter of a record. Records share counters, so it may change although this record was not deleted.
    pub fn of(&self, id: &RecordId) -> u64 {
        self.counter(id).load(Ordering::Acquire)
    }

    fn counter(&self, id: &RecordId) -> &AtomicU64 {
        // The ninth byte is the first of the scoped hash; the first eight are equal for one key in every scope.
        &self.0[usize::from(id.as_bytes()[8])]
    }
}

impl Default for Deletions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Deletions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deletions: u64 = self.0.iter().map(|counter| counter.load(Ordering::Relaxed)).sum();
        f.debug_tuple("Deletions").field(&deletions).finish()
    }
}
