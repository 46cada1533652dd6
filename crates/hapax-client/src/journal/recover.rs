//! What a log says after a restart: the calls without an end. Tells a torn write from damage. Pure: bytes in, calls out.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::frame::{self, Event};
use super::stored::StoredCall;

/// The open calls by their number.
pub(super) type OpenCalls = BTreeMap<u64, RecoveredCall>;

/// An open call that was read.
#[derive(Debug)]
pub(super) struct RecoveredCall {
    pub(super) stored: StoredCall,
    pub(super) is_uncertain: bool,
    /// The bytes of its frame.
    pub(super) size: u64,
}

/// A log that was read.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) calls: OpenCalls,
    /// Whether all frames are needed and intact, so that the file can be continued.
    pub(super) is_clean: bool,
}

/// Reads the frames from `start` on. A frame that is torn ends the log, with all that follows: none of it was acknowledged.
///
/// # Errors
/// The position of damage in bytes that were on disk before: the first `synced` bytes, or what a later frame says.
pub(super) fn read(seed: u32, bytes: &[u8], start: usize, synced: u64) -> Result<Recovered, u64> {
    let mut recovered = Recovered { calls: BTreeMap::new(), is_clean: true };
    let mut at = start;
    while at < bytes.len() {
        let Some(frame) = frame::decode(seed, &bytes[at..]) else {
            recovered.is_clean = false;
            if (at as u64) < synced || was_synced(seed, bytes, at) {
                return Err(at as u64);
            }
            break;
        };
        at += frame.length;
        match frame.event {
            Event::Opened { id, call } => {
                let Some(stored) = StoredCall::read(call, Bytes::copy_from_slice(frame.body)) else {
                    return Err((at - frame.length) as u64);
                };
                let size = frame.length as u64;
                recovered.calls.insert(id, RecoveredCall { stored, is_uncertain: false, size });
            }
            Event::Closed { id } => {
                recovered.calls.remove(&id);
                recovered.is_clean = false;
            }
            Event::Uncertain { id } => {
                if let Some(call) = recovered.calls.get_mut(&id) {
                    call.is_uncertain = true;
                }
            }
        }
    }
    Ok(recovered)
}

/// Whether a frame after `at` shows that the byte at `at` was on disk before. The end of a call is never synced by itself, so
/// it shows nothing by being intact.
fn was_synced(seed: u32, bytes: &[u8], at: usize) -> bool {
    frame::marks_after(bytes, at)
        .filter_map(|position| frame::decode(seed, &bytes[position..]))
        .any(|frame| frame.synced > at as u64 || matches!(frame.event, Event::Opened { .. }))
}

#[cfg(test)]
mod tests;
