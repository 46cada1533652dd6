//! [`Seen`]: which version of a claim this process has seen, and since when.
//!
//! DynamoDB has no clock that could judge a lease, and machines do not agree on the time. So a claim has lapsed for this
//! process when the record still has the version that this process saw a whole lease ago, counted on a clock of its own
//! that nobody sets. Every renewal writes another version. Forgetting what was seen is safe: the lease is watched anew.

use std::collections::HashMap;
use std::time::Duration;

use hapax_core::{Nonce, Record, RecordId, Timestamp};
use parking_lot::Mutex;

use crate::item::{Held, Version};

/// What is known of one claim.
#[derive(Debug)]
struct Sighting {
    version: Version,
    since: Timestamp,
    /// The record as this process wrote it, so that it can be changed without being read first.
    own: Option<Box<Held>>,
}

/// Claims that were seen, a bounded number of them. Those not looked at for longest are forgotten.
#[derive(Debug)]
pub(crate) struct Seen {
    generations: Mutex<Generations>,
    /// The most of each generation.
    max: usize,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<RecordId, Sighting>,
    old: HashMap<RecordId, Sighting>,
}

impl Seen {
    /// Remembers at most `claims_max` claims.
    pub(crate) fn new(claims_max: usize) -> Self {
        Self { generations: Mutex::default(), max: claims_max.div_ceil(2).max(1) }
    }

    /// How long this process has seen the record as it is, at `now` on its steady clock; from now on if never before.
    pub(crate) fn watched(&self, id: &RecordId, version: Version, now: Timestamp) -> Duration {
        let mut generations = self.generations.lock();
        let known = generations.take(id).filter(|sighting| sighting.version == version);
        let sighting = known.unwrap_or(Sighting { version, since: now, own: None });
        let watched = now.since(sighting.since);
        generations.put(*id, sighting, self.max);
        watched
    }

    /// Remembers a claim that this process has just written.
    pub(crate) fn wrote(&self, held: Held, now: Timestamp) {
        let (id, version) = (held.record.key.id, held.version);
        let sighting = Sighting { version, since: now, own: Some(Box::new(held)) };
        self.generations.lock().put(id, sighting, self.max);
    }

    /// The claim of the attempt `nonce` as this process last wrote it.
    pub(crate) fn own(&self, id: &RecordId, nonce: Nonce) -> Option<Box<Held>> {
        let generations = self.generations.lock();
        let sighting = generations.young.get(id).or_else(|| generations.old.get(id))?;
        sighting.own.clone().filter(|held| held.record.fence.nonce == nonce)
    }

    /// Forgets a record that is no claim any more.
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

/// The record as a process may judge it that has watched this version of it for so long: a claim is believed for what
/// is left of its lease, whatever its owner's clock said when it wrote it.
pub(crate) fn judged(held: &Held, watched: Duration, now: Timestamp) -> Record {
    let mut record = held.record.clone();
    if let hapax_core::Status::InProgress { lease_until } = &mut record.status {
        *lease_until = now.after(held.lease.saturating_sub(watched));
    }
    record
}

#[cfg(test)]
mod tests;
