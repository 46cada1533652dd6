//! [`Pieces`]: an answer's body in pieces, whose bytes count until the last one has left.

use std::mem::take;
use std::sync::Arc;

use bytes::Bytes;
use http_body::Frame;

use crate::proxy::socket::{Open, Progress};
use crate::proxy::untaken::{COUNTED_MIN, Leaving, Stream};

/// What is left of the frame that the body gave last.
#[derive(Debug)]
pub(super) struct Pieces {
    connection: Arc<Progress>,
    stream: Option<Stream>,
    piece_max: usize,
    /// Once there was something to count.
    leaving: Option<Arc<Leaving>>,
    rest: Bytes,
}

impl Pieces {
    /// Of an answer that is open, on this stream if it has one.
    pub(super) fn new(open: &Open, stream: Option<Stream>, piece_max: usize) -> Self {
        let connection = Arc::clone(open.progress());
        Self { connection, stream, piece_max, leaving: None, rest: Bytes::new() }
    }

    /// Whether the last frame has been given away.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes of it are left.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next piece of the last frame. It is asked for when the one before was taken.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        self.taken();
        Some(self.split())
    }

    /// The first piece of another frame, or the frame where it is no data.
    pub(super) fn first(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        self.taken();
        match frame.into_data() {
            Ok(data) => {
                self.rest = self.counted(data);
                Frame::data(self.split())
            }
            Err(trailers) => trailers,
        }
    }

    fn taken(&self) {
        if let Some(leaving) = &self.leaving {
            leaving.taken();
        }
    }

    fn split(&mut self) -> Bytes {
        if self.rest.len() <= self.piece_max {
            take(&mut self.rest)
        } else {
            self.rest.split_to(self.piece_max)
        }
    }

    fn counted(&mut self, data: Bytes) -> Bytes {
        if data.len() < COUNTED_MIN {
            return data;
        }
        if self.leaving.is_none() {
            self.leaving = Leaving::new(&self.connection, self.stream.take());
        }
        match &self.leaving {
            Some(leaving) => leaving.hold(data),
            None => data,
        }
    }
}
