//! Generation marks: how a process detects that a server has lost records.
//!
//! A mark is a key that holds an id, created once, and a counter that is incremented by every check. A flushed server has
//! another id or none; one that was restored from an old copy, or lost its last writes, shows a counter value seen before.
//! In a cluster every shard has at least one. A mark belongs to its slot and moves with it, as records do, so slots that
//! arrive without their records are detected too. This module selects and compares marks; it sends nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::slots::{SlotSet, number_in};

/// One reading of a mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MarkReading {
    pub(crate) id: String,
    pub(crate) pulse: i64,
}

/// The last readings of all known marks, by key.
#[derive(Debug)]
pub(crate) struct GenerationMarks {
    /// The key of the mark that every store has.
    home: String,
    known: Mutex<HashMap<String, MarkReading>>,
    has_lost_records: AtomicBool,
}

/// What a reading implies for the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DataState {
    /// Nothing is missing.
    Intact,
    /// Records are lost.
    Lost,
}

impl GenerationMarks {
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

    /// The marks to check on a server: those seen in its slots, or a new one in its lowest slot.
    pub(crate) fn of(&self, slots: &SlotSet) -> Vec<String> {
        let mut keys: Vec<String> = self.known.lock().keys().filter(|key| slots.has(key)).cloned().collect();
        if slots.has(&self.home) && !keys.contains(&self.home) {
            keys.push(self.home.clone());
        }
        if keys.is_empty()
            && let Some(slot) = slots.lowest()
        {
            keys.push(format!("{}{{{}}}", self.home, number_in(slot)));
        }
        keys
    }

    /// Compares a reading with the previous one, and stores it.
    ///
    /// Concurrent checks of one process may return out of order, so a counter below the greatest one is a loss only if it was
    /// requested after the greatest one was seen: `greatest_before` is the greatest known when the request was sent.
    pub(crate) fn record_reading(
        &self,
        key: &str,
        greatest_before: Option<&MarkReading>,
        seen: MarkReading,
    ) -> DataState {
        let state = match greatest_before {
            Some(before) if before.id != seen.id || before.pulse >= seen.pulse => DataState::Lost,
            _ => DataState::Intact,
        };
        let mut known = self.known.lock();
        let is_newer = known.get(key).is_none_or(|known| known.id != seen.id || known.pulse < seen.pulse);
        if is_newer || state == DataState::Lost {
            known.insert(key.to_owned(), seen);
        }
        state
    }

    /// Forgets a mark, after a loss that was accepted.
    pub(crate) fn forget(&self, key: &str) {
        self.known.lock().remove(key);
    }

    /// The greatest reading so far.
    pub(crate) fn known(&self, key: &str) -> Option<MarkReading> {
        self.known.lock().get(key).cloned()
    }

    /// Records the loss for good: where slots move, it cannot be determined later which keys are affected.
    pub(crate) fn lose(&self) {
        self.has_lost_records.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_lost_records(&self) -> bool {
        self.has_lost_records.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
