//! [`JournalState`]: the log with its open calls, under one lock.

use std::collections::BTreeMap;

use super::frame::Event;
use super::log::Log;
use super::stored::StoredCall;
use super::{JournalError, OpenCall, OpenCallState};
use crate::age::KeyAge;

/// A log below this size is not rewritten.
pub(super) const REWRITE_MIN: u64 = 1 << 20;
/// How many times larger than its open calls a log may be.
const REWRITE_FACTOR: u64 = 4;

/// The log and the calls in it that have no end.
#[derive(Debug)]
pub(super) struct JournalState {
    pub(super) log: Log,
    pub(super) calls: BTreeMap<u64, LiveCall>,
    pub(super) next_id: u64,
    /// The bytes of the frames that open these calls.
    pub(super) live_size: u64,
    /// Frames appended since the journal was opened, and those of them that are on disk.
    pub(super) appended: u64,
    pub(super) synced: u64,
}

/// A call without an end.
#[derive(Debug)]
pub(super) struct LiveCall {
    pub(super) stored: StoredCall,
    pub(super) age: KeyAge,
    pub(super) is_uncertain: bool,
    /// The bytes of the frame that opened it.
    pub(super) size: u64,
    /// The frame that opened it; 0 when it was on disk already as the journal was opened.
    pub(super) frame: u64,
    /// Futures of this process that make the call.
    pub(super) running: u32,
}

impl JournalState {
    /// Appends a frame, and returns its size.
    pub(super) fn append(&mut self, event: &Event, body: &[u8]) -> Result<u64, JournalError> {
        let size = self.log.append(event, body)?;
        self.appended += 1;
        Ok(size)
    }

    /// Removes a call, and returns the number of the frame that says so.
    pub(super) fn close(&mut self, id: u64) -> Result<u64, JournalError> {
        if self.calls.contains_key(&id) {
            self.append(&Event::Closed { id }, &[])?;
            self.remove(id);
        }
        Ok(self.appended)
    }

    pub(super) fn remove(&mut self, id: u64) {
        if let Some(call) = self.calls.remove(&id) {
            self.live_size -= call.size;
        }
    }

    pub(super) fn rewrite_if_large(&mut self) -> Result<(), JournalError> {
        let size = self.log.size();
        if size < REWRITE_MIN || size / REWRITE_FACTOR < self.live_size {
            return Ok(());
        }
        let calls = self.calls.iter().map(|(id, call)| (*id, &call.stored, call.is_uncertain));
        self.log.rewrite(calls)?;
        self.synced = self.appended;
        Ok(())
    }
}

impl LiveCall {
    pub(super) fn listed(&self, id: u64) -> OpenCall {
        let state = match self {
            Self { running: 1.., .. } => OpenCallState::Running,
            Self { is_uncertain: true, .. } => OpenCallState::Uncertain,
            _ => OpenCallState::Open,
        };
        self.stored.listed(id, state)
    }
}
