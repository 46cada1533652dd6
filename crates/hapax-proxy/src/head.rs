//! Checks the bytes of HTTP/1 requests before any parser sees them: what two parsers could read differently is refused
//! (request smuggling).
//!
//! [`Http1Inspector`] follows a connection from head to head. It knows where a head begins because it knows the length
//! of the body before it, and refuses whatever makes that length ambiguous. `head/framing.rs` validates a complete head,
//! `head/chunked.rs` follows chunked bodies. This module does no I/O and sends no response: a refused head is replaced
//! by [`INVALID_BYTES`] before its last byte, so that the parser behind fails, responds 400 and closes.

mod chunked;
mod framing;

use memchr::memchr_iter;

use self::chunked::{ChunkProgress, ChunkTracker};
use self::framing::BodyFraming;
pub(crate) use self::framing::{FramingFault, is_host, is_other_protocol};

/// Read in place of the rest of a refused head. No part of a head may contain NUL, and with two line feeds no parser
/// waits for more.
pub(crate) const INVALID_BYTES: &[u8] = b"\0\n\n";

/// Follows the requests of one connection.
#[derive(Debug)]
pub(crate) struct Http1Inspector {
    phase: Phase,
    /// The beginning of a head that has not arrived completely.
    partial: Vec<u8>,
    /// Number of accepted heads.
    heads: usize,
    head_bytes_max: usize,
}

#[derive(Debug)]
enum Phase {
    /// In a head, or before one.
    Head,
    /// In a body, of which this much is left.
    Length(u64),
    Chunked(ChunkTracker),
    /// After an upgrade request that has no response yet.
    UpgradeRequested,
    /// After a 101: no longer HTTP.
    Tunnel,
    /// Nothing more is accepted on this connection.
    Refused,
}

/// The result of inspecting bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inspection {
    /// They may be read as they are.
    Accepted,
    /// This many may be read, then [`INVALID_BYTES`], then nothing more.
    Refused(usize, FramingFault),
    /// The chunked framing of a body is invalid.
    InvalidBody,
}

impl Http1Inspector {
    pub(crate) fn new(head_bytes_max: usize) -> Self {
        Self { phase: Phase::Head, partial: Vec::new(), heads: 0, head_bytes_max }
    }

    /// Whether the last request is complete and the next has not begun.
    pub(crate) fn is_between_requests(&self) -> bool {
        matches!(self.phase, Phase::Head) && self.partial.is_empty()
    }

    /// Whether a head has begun and is incomplete.
    pub(crate) fn is_in_head(&self) -> bool {
        matches!(self.phase, Phase::Head) && !self.partial.is_empty()
    }

    /// Whether an upgrade was requested that has no response yet.
    pub(crate) fn awaits_upgrade(&self) -> bool {
        matches!(self.phase, Phase::UpgradeRequested)
    }

    /// Number of requests so far, including one that requests an upgrade.
    pub(crate) fn heads(&self) -> usize {
        self.heads
    }

    /// The upgrade was declined: requests continue.
    pub(crate) fn upgrade_declined(&mut self) {
        self.phase = Phase::Head;
    }

    /// The upgrade was accepted: what follows is not HTTP.
    pub(crate) fn upgrade_accepted(&mut self) {
        self.phase = Phase::Tunnel;
    }

    /// Inspects the next bytes of the connection.
    pub(crate) fn inspect(&mut self, bytes: &[u8]) -> Inspection {
        let mut at = 0;
        // Where the last head ended, if it did in these bytes.
        let mut head_end = None;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let taken = match &mut self.phase {
                Phase::Tunnel => return Inspection::Accepted,
                Phase::Refused => return Inspection::InvalidBody,
                Phase::UpgradeRequested => Err((1, FramingFault::EarlyUpgrade)),
                Phase::Head => {
                    let taken = self.take_head(rest);
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
                    Some(ChunkProgress::Incomplete) => Ok(rest.len()),
                    Some(ChunkProgress::Complete(taken)) => {
                        self.phase = Phase::Head;
                        Ok(taken)
                    }
                    None => {
                        self.phase = Phase::Refused;
                        // A head that was not passed on yet is refused for its body. The body of one that was passed on
                        // fails for its reader, which produces the response.
                        return head_end.map_or(Inspection::InvalidBody, |end| {
                            Inspection::Refused(end - 1, FramingFault::Chunks)
                        });
                    }
                },
            };
            match taken {
                Ok(taken) => at += taken,
                Err((taken, fault)) => {
                    self.phase = Phase::Refused;
                    // Without its last byte the head is incomplete for every parser.
                    return Inspection::Refused(at + taken - 1, fault);
                }
            }
        }
        Inspection::Accepted
    }

    /// Takes as much of a head as there is. A fault comes with the number of bytes after which it was certain.
    fn take_head(&mut self, bytes: &[u8]) -> Result<usize, (usize, FramingFault)> {
        if self.partial.is_empty() {
            // The usual case: the head is complete, and nothing is copied.
            return match end_of_head(bytes, 0)? {
                Some(end) => self.accept_head(&bytes[..end]).map(|()| end).map_err(|fault| (end, fault)),
                None => self.keep_partial(bytes),
            };
        }
        let before = self.partial.len();
        let space = (self.head_bytes_max + 1).saturating_sub(before);
        self.partial.extend_from_slice(&bytes[..bytes.len().min(space)]);
        let found = end_of_head(&self.partial, before).map_err(|(taken, fault)| (taken - before, fault))?;
        let Some(end) = found else {
            let taken = self.partial.len() - before;
            return if self.partial.len() > self.head_bytes_max {
                Err((taken, FramingFault::TooLarge))
            } else {
                Ok(taken)
            };
        };
        let head = std::mem::take(&mut self.partial);
        self.accept_head(&head[..end]).map(|()| end - before).map_err(|fault| (end - before, fault))
    }

    fn keep_partial(&mut self, bytes: &[u8]) -> Result<usize, (usize, FramingFault)> {
        if bytes.len() > self.head_bytes_max {
            return Err((bytes.len(), FramingFault::TooLarge));
        }
        self.partial.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn accept_head(&mut self, head: &[u8]) -> Result<(), FramingFault> {
        if head.len() > self.head_bytes_max {
            return Err(FramingFault::TooLarge);
        }
        self.phase = match framing::validate_head(head)? {
            BodyFraming::None | BodyFraming::Length(0) => Phase::Head,
            BodyFraming::Length(length) => Phase::Length(length),
            BodyFraming::Chunked => Phase::Chunked(ChunkTracker::default()),
            BodyFraming::Upgrade => Phase::UpgradeRequested,
        };
        self.heads += 1;
        Ok(())
    }
}

/// The end of a head, after its empty line. `new` is where the bytes that were not searched before begin.
///
/// A bare line feed is a fault as soon as it is seen: a parser that takes it for the end of the head would go on while
/// this proxy waits.
pub(crate) fn end_of_head(bytes: &[u8], new: usize) -> Result<Option<usize>, (usize, FramingFault)> {
    for at in memchr_iter(b'\n', &bytes[new..]).map(|at| new + at) {
        match &bytes[..at] {
            // One empty line before a request is accepted (RFC 9112, section 2.2).
            [b'\r'] => {}
            [.., b'\r', b'\n', b'\r'] => return Ok(Some(at + 1)),
            [.., b'\r'] => {}
            _ => return Err((at + 1, FramingFault::BareLineFeed)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
