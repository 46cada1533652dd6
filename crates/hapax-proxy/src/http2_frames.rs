//! [`Frames`]: where the heads of an HTTP/2 connection begin and end, for whoever watches the time.
//!
//! It judges nothing: what frames say, and whether they may say it, is hyper's to find out.

/// What an HTTP/2 connection begins with (RFC 9113, section 3.4). No request of HTTP/1 does.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What every frame begins with: its length, type, flags and stream.
const FRAME_HEAD: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Follows the frames that a client sends.
#[derive(Debug)]
pub(super) struct Frames {
    begun: [u8; FRAME_HEAD],
    begun_len: usize,
    /// How much is left of what is not looked into.
    left: usize,
    is_in_head: bool,
    /// Whether the head ends with the frame that is being read.
    is_last: bool,
    /// How many heads have ended.
    heads: usize,
}

impl Frames {
    /// The head of the first request begins with the connection: whoever greets and asks for nothing is too slow.
    pub(super) fn new() -> Self {
        let begun = [0; FRAME_HEAD];
        Self { begun, begun_len: 0, left: PREFACE.len(), is_in_head: true, is_last: false, heads: 0 }
    }

    /// Whether a head has begun and is not whole.
    pub(super) fn is_in_head(&self) -> bool {
        self.is_in_head
    }

    /// How many heads are whole.
    pub(super) fn heads(&self) -> usize {
        self.heads
    }

    /// Looks at the next bytes of the connection.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        loop {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = &bytes[skipped..];
            if self.left > 0 {
                return;
            }
            if std::mem::take(&mut self.is_last) {
                self.is_in_head = false;
                self.heads += 1;
            }
            let taken = (FRAME_HEAD - self.begun_len).min(bytes.len());
            self.begun[self.begun_len..][..taken].copy_from_slice(&bytes[..taken]);
            self.begun_len += taken;
            bytes = &bytes[taken..];
            if self.begun_len < FRAME_HEAD {
                return;
            }
            self.begun_len = 0;
            let [high, middle, low, kind, flags, ..] = self.begun;
            self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            if matches!(kind, HEADERS | CONTINUATION) {
                self.is_in_head = true;
                self.is_last = flags & END_HEADERS != 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
