//! Where a chunked body ends. Sizes are plain, lines end as lines do, and what else a chunk could say is bounded.

use super::judge::{is_of_framing, split_field};

/// The most bytes of chunk extensions in one body. Nobody here needs any.
const EXTENSIONS_MAX: usize = 1024;

/// The most hexadecimal digits of a size: more could overflow somebody's number.
const DIGITS_MAX: u8 = 15;

/// Follows one chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    place: Place,
    extensions: usize,
    /// The line of the trailers that is being read.
    line: Vec<u8>,
    trailers: usize,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Size { value: u64, digits: u8 },
    Extension { value: u64 },
    SizeEnd { value: u64 },
    Data { left: u64 },
    DataReturn,
    DataEnd,
    Trailers,
}

impl Default for Place {
    fn default() -> Self {
        Self::Size { value: 0, digits: 0 }
    }
}

/// How far the body came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// All bytes belong to it.
    Within,
    /// It ended behind so many bytes.
    Ended(usize),
}

impl Chunks {
    /// Follows the body through these bytes. None: this is no chunked body that everybody reads alike.
    pub(super) fn follow(&mut self, bytes: &[u8], trailers_max: usize) -> Option<Progress> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if let Place::Data { left } = &mut self.place {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                *left -= taken as u64;
                at += taken;
                if *left == 0 {
                    self.place = Place::DataReturn;
                }
                continue;
            }
            at += 1;
            self.place = match (self.place, *byte) {
                (Place::Size { value, digits: 1.. }, b'\r') => Place::SizeEnd { value },
                (Place::Size { value, digits: 1.. }, b';') => Place::Extension { value },
                (Place::Size { value, digits: digits @ ..DIGITS_MAX }, byte) => {
                    let digit = char::from(byte).to_digit(16)?;
                    Place::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
                }
                (Place::Extension { value }, b'\r') => Place::SizeEnd { value },
                (place @ Place::Extension { .. }, b'\t' | b' '..=b'~')
                    if self.extensions < EXTENSIONS_MAX =>
                {
                    self.extensions += 1;
                    place
                }
                (Place::SizeEnd { value: 0 }, b'\n') => Place::Trailers,
                (Place::SizeEnd { value }, b'\n') => Place::Data { left: value },
                (Place::DataReturn, b'\r') => Place::DataEnd,
                (Place::DataEnd, b'\n') => Place::default(),
                (Place::Trailers, byte) => {
                    if self.trailer(byte, trailers_max)? {
                        return Some(Progress::Ended(at));
                    }
                    Place::Trailers
                }
                _ => return None,
            };
        }
        Some(Progress::Within)
    }

    /// Takes one byte of the trailers, and tells whether it was their last.
    fn trailer(&mut self, byte: u8, trailers_max: usize) -> Option<bool> {
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
        // Whoever adds trailers to the head would find another request in it.
        (!is_of_framing(name)).then_some(false)
    }
}
