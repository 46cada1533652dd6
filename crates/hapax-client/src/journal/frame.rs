//! The frames of the log: a mark, the length, a checksum, a header as JSON, the body.
//!
//! Checksums start from a random seed of the file, so that a body which contains frames is not mistaken for some.

use serde::{Deserialize, Serialize};

use super::stored::StoredHead;

/// The mark by which a reader finds the next frame after damage.
const MARK: [u8; 4] = *b"\xf5hxc";
/// The mark, the length and the checksum.
const PREFIX: usize = 12;
/// The maximum of a frame. A length beyond it is damage.
pub(super) const FRAME_MAX: usize = 64 << 20;

/// What happened to a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    Opened { id: u64, call: StoredHead },
    Closed { id: u64 },
    Uncertain { id: u64 },
}

#[derive(Serialize, Deserialize)]
struct Header<E> {
    /// How many bytes of the file were on disk when the frame was written: damage before that is not a torn write.
    synced: u64,
    #[serde(flatten)]
    event: E,
}

/// A frame that was read.
pub(super) struct Frame<'a> {
    pub(super) synced: u64,
    pub(super) event: Event,
    pub(super) body: &'a [u8],
    pub(super) length: usize,
}

/// The frame of an event.
pub(super) fn encode(seed: u32, synced: u64, event: &Event, body: &[u8]) -> Vec<u8> {
    let header = serde_json::to_vec(&Header { synced, event }).expect("numbers and strings become JSON");
    let mut frame = Vec::with_capacity(PREFIX + 4 + header.len() + body.len());
    frame.extend_from_slice(&MARK);
    frame.extend_from_slice(&[0; PREFIX - MARK.len()]);
    frame.extend_from_slice(&length(header.len()).to_le_bytes());
    frame.extend_from_slice(&header);
    frame.extend_from_slice(body);
    let payload = &frame[PREFIX..];
    let (length, checksum) = (length(payload.len()), checksum(seed, payload));
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..PREFIX].copy_from_slice(&checksum.to_le_bytes());
    frame
}

/// A length that does not fit is refused when the frame is appended.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The frame at the start of `bytes`; `None` when there is no complete and intact one.
pub(super) fn decode(seed: u32, bytes: &[u8]) -> Option<Frame<'_>> {
    let rest = bytes.strip_prefix(&MARK)?;
    let (length, rest) = number(rest)?;
    let (expected, rest) = number(rest)?;
    let payload = rest.get(..usize::try_from(length).ok().filter(|length| *length <= FRAME_MAX)?)?;
    if checksum(seed, payload) != expected {
        return None;
    }
    let (header_length, rest) = number(payload)?;
    let (header, body) = rest.split_at_checked(usize::try_from(header_length).ok()?)?;
    let Header { synced, event } = serde_json::from_slice::<Header<Event>>(header).ok()?;
    Some(Frame { synced, event, body, length: PREFIX + payload.len() })
}

/// The positions after `at` where a frame may begin.
pub(super) fn marks_after(bytes: &[u8], at: usize) -> impl Iterator<Item = usize> {
    let is_mark = |window: &(usize, &[u8])| window.1 == MARK;
    bytes.windows(MARK.len()).enumerate().skip(at + 1).filter(is_mark).map(|(position, _)| position)
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

fn checksum(seed: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(payload);
    hasher.finalize()
}
