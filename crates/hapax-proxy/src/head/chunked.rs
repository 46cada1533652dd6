//! Finds the end of a chunked body. Sizes are plain hexadecimal, lines end with CRLF, and extensions are bounded.

use super::framing::{is_framing_field, split_field};

/// The most bytes of chunk extensions in one body. The proxy uses none.
const EXTENSIONS_MAX: usize = 1024;

/// The most hexadecimal digits of a size: more could overflow an integer of some parser.
const DIGITS_MAX: u8 = 15;

/// Follows one chunked body.
#[derive(Debug, Default)]
pub(super) struct ChunkTracker {
    state: ChunkState,
    extensions: usize,
    /// The current line of the trailers.
    line: Vec<u8>,
    trailers: usize,
}

#[derive(Clone, Copy, Debug)]
enum ChunkState {
    Size { value: u64, digits: u8 },
    Extension { value: u64 },
    SizeEnd { value: u64 },
    Data { left: u64 },
    DataReturn,
    DataEnd,
    Trailers,
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size { value: 0, digits: 0 }
    }
}

/// How far the body has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChunkProgress {
    /// All bytes belong to the body.
    Incomplete,
    /// The body ended after this many bytes.
    Complete(usize),
}

impl ChunkTracker {
    /// Follows the body through these bytes. None: parsers could disagree about this chunked body.
    pub(super) fn follow(&mut self, bytes: &[u8], trailers_max: usize) -> Option<ChunkProgress> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if let ChunkState::Data { left } = &mut self.state {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                *left -= taken as u64;
                at += taken;
                if *left == 0 {
                    self.state = ChunkState::DataReturn;
                }
                continue;
            }
            at += 1;
            self.state = match (self.state, *byte) {
                (ChunkState::Size { value, digits: 1.. }, b'\r') => ChunkState::SizeEnd { value },
                (ChunkState::Size { value, digits: 1.. }, b';') => ChunkState::Extension { value },
                (ChunkState::Size { value, digits: digits @ ..DIGITS_MAX }, byte) => {
                    let digit = char::from(byte).to_digit(16)?;
                    ChunkState::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
                }
                (ChunkState::Extension { value }, b'\r') => ChunkState::SizeEnd { value },
                (state @ ChunkState::Extension { .. }, b'\t' | b' '..=b'~')
                    if self.extensions < EXTENSIONS_MAX =>
                {
                    self.extensions += 1;
                    state
                }
                (ChunkState::SizeEnd { value: 0 }, b'\n') => ChunkState::Trailers,
                (ChunkState::SizeEnd { value }, b'\n') => ChunkState::Data { left: value },
                (ChunkState::DataReturn, b'\r') => ChunkState::DataEnd,
                (ChunkState::DataEnd, b'\n') => ChunkState::default(),
                (ChunkState::Trailers, byte) => {
                    if self.take_trailer_byte(byte, trailers_max)? {
                        return Some(ChunkProgress::Complete(at));
                    }
                    ChunkState::Trailers
                }
                _ => return None,
            };
        }
        Some(ChunkProgress::Incomplete)
    }

    /// Whether this byte was the last of the trailers.
    fn take_trailer_byte(&mut self, byte: u8, trailers_max: usize) -> Option<bool> {
        self.trailers += 1;
        if self.trailers > trailers_max {
            return None;
        }
        if byte != b'\n' {
            self.line.push(byte);
            return Some(false);
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r")?;
        if line.is_empty() {
            return Some(true);
        }
        let (name, _) = split_field(line).ok()?;
        // A server that merges trailers into the head would get another framing of the request.
        (!is_framing_field(name)).then_some(false)
    }
}
