//! The bytes of HTTP/1 requests, looked at before anybody parses them: what two parsers could read in two ways goes
//! no further.
//!
//! [`Inspector`] follows a connection from head to head. It knows where a head begins because it knows how long the
//! body before it was, and it refuses whatever would make that doubtful. A head is judged as a whole by
//! `head/judge.rs`, chunks by `head/chunks.rs`. This file does no I/O and answers nobody. What is refused is spoiled
//! instead, before its last byte, so that the parser behind takes it for an error, says 400 and closes.

mod chunks;
mod judge;

use memchr::memchr_iter;

use self::chunks::{Chunks, Progress};
use self::judge::Body;
pub(super) use self::judge::{Fault, is_host, is_other_protocol};

/// What is read in place of what must not be understood. No part of a head may contain NUL, and with two line feeds no
/// parser waits for more.
pub(super) const SPOILED: &[u8] = b"\0\n\n";

/// Follows the requests of one connection.
#[derive(Debug)]
pub(super) struct Inspector {
    phase: Phase,
    /// What came of a head, when it did not come at once.
    begun: Vec<u8>,
    /// How many heads were taken.
    heads: usize,
    head_bytes_max: usize,
}

#[derive(Debug)]
enum Phase {
    /// In a head, or before one.
    Head,
    /// This much is left of a body.
    Length(u64),
    Chunked(Chunks),
    /// The client asked for another protocol, and there is no answer yet.
    Asked,
    /// It is no longer HTTP.
    Tunnel,
    /// Nothing more is taken from this connection.
    Refused,
}

/// What may be done with bytes that were looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inspected {
    /// They may be read as they are.
    Fine,
    /// So many may be read, then [`SPOILED`], then nothing more.
    Refused(usize, Fault),
    /// The framing of a body is wrong.
    Broken,
}

impl Inspector {
    pub(super) fn new(head_bytes_max: usize) -> Self {
        Self { phase: Phase::Head, begun: Vec::new(), heads: 0, head_bytes_max }
    }

    /// Whether a request may begin here and none has.
    pub(super) fn is_between(&self) -> bool {
        matches!(self.phase, Phase::Head) && self.begun.is_empty()
    }

    /// Whether a head has begun and is not whole.
    pub(super) fn is_in_head(&self) -> bool {
        matches!(self.phase, Phase::Head) && !self.begun.is_empty()
    }

    /// Whether another protocol was asked for, and nobody said what came of it.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.phase, Phase::Asked)
    }

    /// How many requests have come so far, with the one that may be asking for another protocol.
    pub(super) fn heads(&self) -> usize {
        self.heads
    }

    /// The other protocol was declined: requests go on.
    pub(super) fn declined(&mut self) {
        self.phase = Phase::Head;
    }

    /// The other protocol was taken: what follows is not HTTP.
    pub(super) fn accepted(&mut self) {
        self.phase = Phase::Tunnel;
    }

    /// Looks at the next bytes of the connection.
    pub(super) fn inspect(&mut self, bytes: &[u8]) -> Inspected {
        let mut at = 0;
        // Where the last head ended, if it did in these bytes.
        let mut head_end = None;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let taken = match &mut self.phase {
                Phase::Tunnel => return Inspected::Fine,
                Phase::Refused => return Inspected::Broken,
                Phase::Asked => Err((1, Fault::EarlyUpgrade)),
                Phase::Head => {
                    let taken = self.head(rest);
                    head_end = taken.as_ref().ok().map(|taken| at + taken);
                    taken
                }
                Phase::Length(left) => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= taken as u64;
                    if *left == 0 {
                        self.phase = Phase::Head;
                    }
                    Ok(taken)
                }
                Phase::Chunked(chunks) => match chunks.follow(rest, self.head_bytes_max) {
                    Some(Progress::Within) => Ok(rest.len()),
                    Some(Progress::Ended(taken)) => {
                        self.phase = Phase::Head;
                        Ok(taken)
                    }
                    None => {
                        self.phase = Phase::Refused;
                        // A head that nobody has seen yet is refused for its body. One that was seen has its answer
                        // from whoever reads the body, and that ends here.
                        return head_end
                            .map_or(Inspected::Broken, |end| Inspected::Refused(end - 1, Fault::Chunks));
                    }
                },
            };
            match taken {
                Ok(taken) => at += taken,
                Err((taken, fault)) => {
                    self.phase = Phase::Refused;
                    // Without its last byte it is not whole, whoever reads it.
                    return Inspected::Refused(at + taken - 1, fault);
                }
            }
        }
        Inspected::Fine
    }

    /// Takes as much of a head as there is. A fault comes with the number of bytes up to where it was certain.
    fn head(&mut self, bytes: &[u8]) -> Result<usize, (usize, Fault)> {
        if self.begun.is_empty() {
            // Usually all of it is there, and nothing needs to be copied.
            return match end_of_head(bytes, 0)? {
                Some(end) => self.judge(&bytes[..end]).map(|()| end).map_err(|fault| (end, fault)),
                None => self.keep(bytes),
            };
        }
        let before = self.begun.len();
        let room = (self.head_bytes_max + 1).saturating_sub(before);
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let found = end_of_head(&self.begun, before).map_err(|(taken, fault)| (taken - before, fault))?;
        let Some(end) = found else {
            let taken = self.begun.len() - before;
            return if self.begun.len() > self.head_bytes_max {
                Err((taken, Fault::TooLarge))
            } else {
                Ok(taken)
            };
        };
        let begun = std::mem::take(&mut self.begun);
        self.judge(&begun[..end]).map(|()| end - before).map_err(|fault| (end - before, fault))
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<usize, (usize, Fault)> {
        if bytes.len() > self.head_bytes_max {
            return Err((bytes.len(), Fault::TooLarge));
        }
        self.begun.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn judge(&mut self, head: &[u8]) -> Result<(), Fault> {
        if head.len() > self.head_bytes_max {
            return Err(Fault::TooLarge);
        }
        self.phase = match judge::judge(head)? {
            Body::None | Body::Length(0) => Phase::Head,
            Body::Length(length) => Phase::Length(length),
            Body::Chunked => Phase::Chunked(Chunks::default()),
            Body::Upgrade => Phase::Asked,
        };
        self.heads += 1;
        Ok(())
    }
}

/// Where a head ends: behind its empty line. Only what begins at `new` was not searched before.
///
/// A line that does not end as lines do is found here and not later: a parser that takes it for the end of the head
/// would go on while we wait.
pub(super) fn end_of_head(bytes: &[u8], new: usize) -> Result<Option<usize>, (usize, Fault)> {
    for at in memchr_iter(b'\n', &bytes[new..]).map(|at| new + at) {
        match &bytes[..at] {
            // One empty line before a request is somebody's old habit, and forgiven.
            [b'\r'] => {}
            [.., b'\r', b'\n', b'\r'] => return Ok(Some(at + 1)),
            [.., b'\r'] => {}
            _ => return Err((at + 1, Fault::BareLineFeed)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
