//! The generation mark: how a process notices that the server has lost records.
//!
//! A key of its own holds an id, made once, and a number that grows with every look. A server that was flushed has
//! another id or none; one that was restored from an old copy, or lost its last writes, shows a number that was seen
//! before. This file compares; it sends nothing.

use parking_lot::Mutex;

/// What one look showed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) pulse: i64,
}

/// What this process knows of the mark.
#[derive(Debug, Default)]
pub(crate) struct Mark(Mutex<Option<Seen>>);

/// What a look says about the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Nothing seen so far is missing.
    Whole,
    /// Records are lost.
    Lost,
}

impl Mark {
    /// Judges what a look showed, and remembers it.
    ///
    /// Looks of one process overtake each other on their way back, so a number below the greatest one is a loss only
    /// when it was asked for after the greatest one was seen: `greatest_before` is what was known when it was sent.
    pub(crate) fn judge(&self, greatest_before: Option<&Seen>, seen: Seen) -> Memory {
        let memory = match greatest_before {
            Some(before) if before.id != seen.id || before.pulse >= seen.pulse => Memory::Lost,
            _ => Memory::Whole,
        };
        let mut known = self.0.lock();
        let is_newer = known.as_ref().is_none_or(|known| known.id != seen.id || known.pulse < seen.pulse);
        if is_newer || memory == Memory::Lost {
            *known = Some(seen);
        }
        memory
    }

    /// Begins anew, after a loss that was accepted.
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }

    /// The greatest number so far and its id.
    pub(crate) fn known(&self) -> Option<Seen> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests;
