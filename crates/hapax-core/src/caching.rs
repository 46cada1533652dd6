//! [`Caching`]: what may be kept of a store's finished records in front of it, and for how long.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::key::RecordId;

/// How many counters a store has. One deletion makes a cache forget one part in so many.
const PARTS: usize = 256;

/// How long the finished records of a store may be answered from memory in front of it.
///
/// Such a cache only ever answers with what the store has recorded. What it does not hold is asked of the store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Caching {
    /// Not at all: the store answers from memory itself ([`Store::recall`](crate::Store::recall)).
    Needless,
    /// For a minute at most: other processes use the store as well and may delete a record at any time.
    #[default]
    Shared,
    /// Until the retention of a record is over: every deletion goes through this store, which counts it here.
    Owned(Arc<Deletions>),
}

/// Counts the deletions in a store that has one owner.
///
/// A cache reads the counter of a record before it asks the store, and keeps it with the answer. When the counter has
/// changed since, the answer may be out of date and the store is asked again.
pub struct Deletions([AtomicU64; PARTS]);

impl Deletions {
    /// No deletion so far.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; PARTS])
    }

    /// Counts the deletion of a record. The store calls it when no claim finds the record any more and before it answers
    /// the deletion.
    pub fn count(&self, id: &RecordId) {
        self.counter(id).fetch_add(1, Ordering::AcqRel);
    }

    /// The counter of a record. Records share counters: it may change although this one was not deleted.
    pub fn of(&self, id: &RecordId) -> u64 {
        self.counter(id).load(Ordering::Acquire)
    }

    fn counter(&self, id: &RecordId) -> &AtomicU64 {
        // The ninth byte is the first of the scoped hash: the first eight are the same for one key everywhere.
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
