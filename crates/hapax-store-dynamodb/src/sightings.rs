//! [`Sightings`]: which version of a claim this process has seen, and since when.
//!
//! DynamoDB has no clock for leases, and the clocks of machines disagree. So a claim has lapsed for this process when the
//! record still has the version that this process saw a whole lease ago, measured on its own monotonic clock. Every renewal
//! writes another version. Forgetting a sighting is safe: the lease is then observed anew.

use std::collections::HashMap;
use std::time::Duration;

use hapax_core::{Nonce, Record, RecordId, Timestamp};
use parking_lot::Mutex;

use crate::item::{StoredRecord, Version};

/// A sighting of one claim.
#[derive(Debug)]
struct Sighting {
    version: Version,
    since: Timestamp,
    /// The record as this process wrote it, so that it can be changed without reading it first.
    own: Option<Box<StoredRecord>>,
}

/// A bounded LRU map of sightings, in two generations.
#[derive(Debug)]
pub(crate) struct Sightings {
    generations: Mutex<Generations>,
    /// The size limit of each generation.
    max: usize,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<RecordId, Sighting>,
    old: HashMap<RecordId, Sighting>,
}

impl Sightings {
    /// Keeps at most `claims_max` claims.
    pub(crate) fn new(claims_max: usize) -> Self {
        Self { generations: Mutex::default(), max: claims_max.div_ceil(2).max(1) }
    }

    /// How long this process has seen this version, at `now` on its monotonic clock; from now on if never before.
    pub(crate) fn observed_for(&self, id: &RecordId, version: Version, now: Timestamp) -> Duration {
        let mut generations = self.generations.lock();
        let known = generations.take(id).filter(|sighting| sighting.version == version);
        let sighting = known.unwrap_or(Sighting { version, since: now, own: None });
        let watched = now.since(sighting.since);
        generations.put(*id, sighting, self.max);
        watched
    }

    /// Stores a claim that this process has just written.
    pub(crate) fn wrote(&self, stored: StoredRecord, now: Timestamp) {
        let (id, version) = (stored.record.key.id, stored.version);
        let sighting = Sighting { version, since: now, own: Some(Box::new(stored)) };
        self.generations.lock().put(id, sighting, self.max);
    }

    /// The claim of the attempt `nonce` as this process last wrote it.
    pub(crate) fn own(&self, id: &RecordId, nonce: Nonce) -> Option<Box<StoredRecord>> {
        let generations = self.generations.lock();
        let sighting = generations.young.get(id).or_else(|| generations.old.get(id))?;
        sighting.own.clone().filter(|stored| stored.record.fence.nonce == nonce)
    }

    /// Forgets a record that is no longer a claim.
    pub(crate) fn forget(&self, id: &RecordId) {
        self.generations.lock().take(id);
    }
}

impl Generations {
    fn take(&mut self, id: &RecordId) -> Option<Sighting> {
        self.young.remove(id).or_else(|| self.old.remove(id))
    }

    fn put(&mut self, id: RecordId, sighting: Sighting, max: usize) {
        if self.young.len() >= max && !self.young.contains_key(&id) {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&id);
        self.young.insert(id, sighting);
    }
}

/// The record as observed for so long by this process: the lease lasts for the rest of its length, whatever its owner's
/// clock showed when it was written.
pub(crate) fn observed_record(stored: &StoredRecord, watched: Duration, now: Timestamp) -> Record {
    let mut record = stored.record.clone();
    if let hapax_core::Status::InProgress { lease_until } = &mut record.status {
        *lease_until = now.after(stored.lease.saturating_sub(watched));
    }
    record
}

#[cfg(test)]
mod tests;
