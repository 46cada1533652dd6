//! What must be on the disk, judged by what a child process said before it died.

use std::collections::BTreeMap;

use anyhow::Result;

use super::image;
use super::note::{Act, Note, Step};
use super::subject::payload;

/// What a store holds for one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Nothing.
    Absent,
    /// A claim that has no outcome: in progress, or uncertain after a restart.
    Open {
        /// By which attempt.
        attempt: u32,
    },
    /// A pinned outcome.
    Pinned {
        /// By which attempt.
        attempt: u32,
        /// The outcome as it is replayed.
        payload: Vec<u8>,
    },
    /// A tombstone.
    Released {
        /// By which attempt.
        attempt: u32,
    },
    /// Something that cannot be read, or that reads differently in two ways.
    Unreadable(String),
}

/// What every key must hold: what was acknowledged, or what was under way when the process died.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    keys: BTreeMap<u64, Entry>,
    faults: Vec<String>,
}

#[derive(Clone, Debug)]
struct Entry {
    known: Fact,
    /// Begun and not answered, or answered with "unknown".
    open: Option<Fact>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fact {
    Absent,
    Open(u32),
    Pinned(u32),
    Released(u32),
}

impl Ledger {
    /// Takes in one note.
    pub fn note(&mut self, note: &Note) {
        match note {
            Note::Ready => {}
            Note::Begin(act) => {
                self.keys.entry(act.key).or_insert(Entry { known: Fact::Absent, open: None }).open =
                    Some(Fact::after(act));
            }
            Note::Done(act) => match self.keys.get_mut(&act.key).map(|entry| (entry.open.take(), entry)) {
                Some((Some(fact), entry)) => entry.known = fact,
                _ => self.faults.push(format!("{act} was acknowledged but never begun")),
            },
            Note::Refused(act, _) => {
                if let Some(entry) = self.keys.get_mut(&act.key) {
                    entry.open = None;
                }
            }
            Note::Unknown(_) => {}
            Note::Wrong(act, what) => self.faults.push(format!("{act}: {what}")),
        }
    }

    /// Takes in the notes of a journal's entry, if it is one of notes.
    pub fn read(&mut self, entry: &image::Entry) -> Result<()> {
        if let image::Entry::Note(lines) = entry {
            for line in lines.lines() {
                self.note(&line.parse()?);
            }
        }
        Ok(())
    }

    /// Whether an operation has been begun and not answered.
    pub fn is_busy(&self) -> bool {
        self.keys.values().any(|entry| entry.open.is_some())
    }

    /// Every key that was ever touched.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        self.keys.keys().copied()
    }

    /// Compares a key with what the store holds, which from now on counts as known.
    pub fn compare(&mut self, key: u64, seen: &Seen) {
        let Some(entry) = self.keys.get_mut(&key) else {
            return;
        };
        let fact = match seen {
            Seen::Absent => Fact::Absent,
            Seen::Open { attempt } => Fact::Open(*attempt),
            Seen::Released { attempt } => Fact::Released(*attempt),
            Seen::Pinned { attempt, payload: bytes } => {
                if *bytes != payload(key) {
                    self.faults.push(format!(
                        "key {key}: its outcome of {} bytes is not the one recorded",
                        bytes.len()
                    ));
                }
                Fact::Pinned(*attempt)
            }
            Seen::Unreadable(why) => {
                self.faults.push(format!("key {key}: unreadable: {why}"));
                return;
            }
        };
        if fact != entry.known && Some(fact) != entry.open {
            self.faults.push(format!(
                "key {key}: acknowledged {:?}, under way {:?}, found {fact:?}",
                entry.known, entry.open
            ));
        }
        *entry = Entry { known: fact, open: None };
    }

    /// What was found wrong so far; empties the list.
    pub fn take_faults(&mut self) -> Vec<String> {
        std::mem::take(&mut self.faults)
    }

    /// Acts that must succeed on a store that works: a new key, a late completion, a claim of a released key.
    pub fn fresh_acts(&self, new_key: u64) -> Vec<Act> {
        let find = |wanted: fn(Fact) -> Option<(Step, u32)>| {
            self.keys.iter().find_map(|(&key, entry)| {
                wanted(entry.known).map(|(step, attempt)| Act { step, key, attempt })
            })
        };
        let late = find(|fact| match fact {
            Fact::Open(attempt) => Some((Step::Complete, attempt)),
            _ => None,
        });
        let again = find(|fact| match fact {
            Fact::Released(attempt) => Some((Step::Claim, attempt + 1)),
            _ => None,
        });
        let new = [Step::Claim, Step::Complete].map(|step| Act { step, key: new_key, attempt: 1 });
        new.into_iter().chain(late).chain(again).collect()
    }
}

impl Fact {
    const fn after(act: &Act) -> Self {
        match act.step {
            Step::Claim | Step::Renew => Self::Open(act.attempt),
            Step::Complete => Self::Pinned(act.attempt),
            Step::Release => Self::Released(act.attempt),
        }
    }
}

#[cfg(test)]
mod tests;
