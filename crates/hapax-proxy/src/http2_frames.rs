//! [`FrameTracker`]: finds where header blocks begin and end on an HTTP/2 connection, for the head timeout.
//!
//! It validates nothing: that is hyper's part.

/// The connection preface (RFC 9113, section 3.4). No HTTP/1 request begins with it.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame header: length, type, flags and stream.
const FRAME_HEADER: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Follows the frames that a client sends.
#[derive(Debug)]
pub(crate) struct FrameTracker {
    frame_header: [u8; FRAME_HEADER],
    frame_header_len: usize,
    /// Bytes left of the preface or of the current frame's payload.
    payload_left: usize,
    is_in_head: bool,
    /// Whether the header block ends with the current frame.
    is_last_frame: bool,
    /// Number of complete header blocks.
    heads: usize,
}

impl FrameTracker {
    /// The head timeout of the first request starts with the connection: a client that only sends the preface is
    /// closed by it.
    pub(crate) fn new() -> Self {
        Self {
            frame_header: [0; FRAME_HEADER],
            frame_header_len: 0,
            payload_left: PREFACE.len(),
            is_in_head: true,
            is_last_frame: false,
            heads: 0,
        }
    }

    /// Whether a header block has begun and is incomplete.
    pub(crate) fn is_in_head(&self) -> bool {
        self.is_in_head
    }

    /// Number of complete header blocks.
    pub(crate) fn heads(&self) -> usize {
        self.heads
    }

    /// Processes the next bytes of the connection.
    pub(crate) fn follow(&mut self, mut bytes: &[u8]) {
        loop {
            let skipped = self.payload_left.min(bytes.len());
            self.payload_left -= skipped;
            bytes = &bytes[skipped..];
            if self.payload_left > 0 {
                return;
            }
            if std::mem::take(&mut self.is_last_frame) {
                self.is_in_head = false;
                self.heads += 1;
            }
            let taken = (FRAME_HEADER - self.frame_header_len).min(bytes.len());
            self.frame_header[self.frame_header_len..][..taken].copy_from_slice(&bytes[..taken]);
            self.frame_header_len += taken;
            bytes = &bytes[taken..];
            if self.frame_header_len < FRAME_HEADER {
                return;
            }
            self.frame_header_len = 0;
            let [high, middle, low, kind, flags, ..] = self.frame_header;
            self.payload_left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            if matches!(kind, HEADERS | CONTINUATION) {
                self.is_in_head = true;
                self.is_last_frame = flags & END_HEADERS != 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
