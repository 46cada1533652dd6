//! [`ExpectedStore`]: what a store must hold, by the events that a child process printed before it died.

use std::collections::BTreeMap;

use anyhow::Result;

use super::event::{ChildEvent, Operation, OperationKind};
use super::image::DiskEvent;
use super::subject::payload;

/// The stored state of one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoredState {
    /// No record.
    Absent,
    /// A claim that has no outcome: in progress, or uncertain after a restart.
    Open {
        /// Its attempt.
        attempt: u32,
    },
    /// A pinned outcome.
    Pinned {
        /// Its attempt.
        attempt: u32,
        /// The outcome as it is replayed.
        payload: Vec<u8>,
    },
    /// A tombstone.
    Released {
        /// Its attempt.
        attempt: u32,
    },
    /// A record that cannot be read, or that two reads report differently.
    Unreadable(String),
}

/// The state that every key must have: the acknowledged one, or the one of the operation in flight at the kill.
#[derive(Clone, Debug, Default)]
pub struct ExpectedStore {
    keys: BTreeMap<u64, ExpectedKey>,
    faults: Vec<String>,
}

#[derive(Clone, Debug)]
struct ExpectedKey {
    acknowledged: KeyState,
    /// The state after an operation that was begun and not answered, or answered as unknown.
    in_flight: Option<KeyState>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeyState {
    Absent,
    Open(u32),
    Pinned(u32),
    Released(u32),
}

impl ExpectedStore {
    /// Applies one event.
    pub fn apply(&mut self, event: &ChildEvent) {
        match event {
            ChildEvent::Ready => {}
            ChildEvent::Begin(operation) => {
                let absent = ExpectedKey { acknowledged: KeyState::Absent, in_flight: None };
                self.keys.entry(operation.key).or_insert(absent).in_flight = Some(KeyState::after(operation));
            }
            ChildEvent::Done(operation) => {
                match self.keys.get_mut(&operation.key).map(|key| (key.in_flight.take(), key)) {
                    Some((Some(state), key)) => key.acknowledged = state,
                    _ => self.faults.push(format!("{operation} was acknowledged but never begun")),
                }
            }
            ChildEvent::Refused(operation, _) => {
                if let Some(key) = self.keys.get_mut(&operation.key) {
                    key.in_flight = None;
                }
            }
            ChildEvent::Unknown(_) => {}
            ChildEvent::Wrong(operation, what) => self.faults.push(format!("{operation}: {what}")),
        }
    }

    /// Applies the events of a disk event, if it is output of the child.
    pub fn apply_output(&mut self, event: &DiskEvent) -> Result<()> {
        if let DiskEvent::Output(lines) = event {
            for line in lines.lines() {
                self.apply(&line.parse()?);
            }
        }
        Ok(())
    }

    /// Whether an operation is in flight.
    pub fn is_busy(&self) -> bool {
        self.keys.values().any(|key| key.in_flight.is_some())
    }

    /// Every key with an operation.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        self.keys.keys().copied()
    }

    /// Compares a key with its stored state, which counts as acknowledged from now on.
    pub fn compare(&mut self, key: u64, stored: &StoredState) {
        let Some(expected) = self.keys.get_mut(&key) else {
            return;
        };
        let state = match stored {
            StoredState::Absent => KeyState::Absent,
            StoredState::Open { attempt } => KeyState::Open(*attempt),
            StoredState::Released { attempt } => KeyState::Released(*attempt),
            StoredState::Pinned { attempt, payload: bytes } => {
                if *bytes != payload(key) {
                    self.faults.push(format!(
                        "key {key}: its outcome of {} bytes is not the one recorded",
                        bytes.len()
                    ));
                }
                KeyState::Pinned(*attempt)
            }
            StoredState::Unreadable(why) => {
                self.faults.push(format!("key {key}: unreadable: {why}"));
                return;
            }
        };
        if state != expected.acknowledged && Some(state) != expected.in_flight {
            self.faults.push(format!(
                "key {key}: acknowledged {:?}, in flight {:?}, found {state:?}",
                expected.acknowledged, expected.in_flight
            ));
        }
        *expected = ExpectedKey { acknowledged: state, in_flight: None };
    }

    /// Takes the faults that were found so far.
    pub fn take_faults(&mut self) -> Vec<String> {
        std::mem::take(&mut self.faults)
    }

    /// Operations that must succeed on a working store: a new key, a late completion, a claim of a released key.
    pub fn next_operations(&self, new_key: u64) -> Vec<Operation> {
        let find = |wanted: fn(KeyState) -> Option<(OperationKind, u32)>| {
            self.keys.iter().find_map(|(&key, expected)| {
                wanted(expected.acknowledged).map(|(kind, attempt)| Operation { kind, key, attempt })
            })
        };
        let late = find(|state| match state {
            KeyState::Open(attempt) => Some((OperationKind::Complete, attempt)),
            _ => None,
        });
        let again = find(|state| match state {
            KeyState::Released(attempt) => Some((OperationKind::Claim, attempt + 1)),
            _ => None,
        });
        let new = [OperationKind::Claim, OperationKind::Complete];
        let new = new.map(|kind| Operation { kind, key: new_key, attempt: 1 });
        new.into_iter().chain(late).chain(again).collect()
    }
}

impl KeyState {
    const fn after(operation: &Operation) -> Self {
        match operation.kind {
            OperationKind::Claim | OperationKind::Renew => Self::Open(operation.attempt),
            OperationKind::Complete => Self::Pinned(operation.attempt),
            OperationKind::Release => Self::Released(operation.attempt),
        }
    }
}

#[cfg(test)]
mod tests;
