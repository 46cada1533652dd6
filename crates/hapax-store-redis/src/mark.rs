//! Generation marks: how a process notices that a server has lost records.
//!
//! A key of its own holds an id, made once, and a number that grows with every look. A server that was flushed has
//! another id or none; one that was restored from an old copy, or lost its last writes, shows a number that was seen
//! before. In a cluster every shard has one at least. A mark belongs to its slot and moves with it, as records do, so
//! slots that come without their records are noticed too. This file chooses and compares; it sends nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::slots::{Territory, number_in};

/// What one look showed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) pulse: i64,
}

/// What this process knows of all marks, by the names of their keys.
#[derive(Debug)]
pub(crate) struct Marks {
    /// The mark that every store has, whatever its servers are.
    home: String,
    known: Mutex<HashMap<String, Seen>>,
    has_lost_records: AtomicBool,
}

/// What a look says about the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Nothing seen so far is missing.
    Whole,
    /// Records are lost.
    Lost,
}

impl Marks {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            home: format!("{prefix}generation"),
            known: Mutex::default(),
            has_lost_records: AtomicBool::new(false),
        }
    }

    /// Whether this is the mark without which there is no store.
    pub(crate) fn is_home(&self, key: &str) -> bool {
        key == self.home
    }

    /// The marks to look at on a server: those that were seen in its slots, or else one in its lowest.
    pub(crate) fn of(&self, territory: &Territory) -> Vec<String> {
        let mut keys: Vec<String> =
            self.known.lock().keys().filter(|key| territory.has(key)).cloned().collect();
        if territory.has(&self.home) && !keys.contains(&self.home) {
            keys.push(self.home.clone());
        }
        if keys.is_empty()
            && let Some(slot) = territory.lowest()
        {
            keys.push(format!("{}{{{}}}", self.home, number_in(slot)));
        }
        keys
    }

    /// Judges what a look showed, and remembers it.
    ///
    /// Looks of one process overtake each other on their way back, so a number below the greatest one is a loss only
    /// when it was asked for after the greatest one was seen: `greatest_before` is what was known when it was sent.
    pub(crate) fn judge(&self, key: &str, greatest_before: Option<&Seen>, seen: Seen) -> Memory {
        let memory = match greatest_before {
            Some(before) if before.id != seen.id || before.pulse >= seen.pulse => Memory::Lost,
            _ => Memory::Whole,
        };
        let mut known = self.known.lock();
        let is_newer = known.get(key).is_none_or(|known| known.id != seen.id || known.pulse < seen.pulse);
        if is_newer || memory == Memory::Lost {
            known.insert(key.to_owned(), seen);
        }
        memory
    }

    /// Begins anew, after a loss that was accepted.
    pub(crate) fn forget(&self, key: &str) {
        self.known.lock().remove(key);
    }

    /// The greatest number so far and its id.
    pub(crate) fn known(&self, key: &str) -> Option<Seen> {
        self.known.lock().get(key).cloned()
    }

    /// Records are lost somewhere, and nobody has accepted it. It stays so: where slots move, nobody could tell later
    /// which keys are in doubt.
    pub(crate) fn lose(&self) {
        self.has_lost_records.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_lost_records(&self) -> bool {
        self.has_lost_records.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
