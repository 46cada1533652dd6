//! [`FrameParts`]: splits a response's frames into parts, whose bytes count in the budget until the last one has left.

use std::mem::take;
use std::sync::Arc;

use bytes::Bytes;
use http_body::Frame;

use crate::client_io::{ConnectionState, OpenRequest};
use crate::response_budget::{BufferedResponse, COUNTED_MIN, StreamHandle};

/// The unsent rest of the last data frame.
#[derive(Debug)]
pub(super) struct FrameParts {
    connection: Arc<ConnectionState>,
    stream: Option<StreamHandle>,
    part_max: usize,
    /// Set by the first frame that is counted.
    response: Option<Arc<BufferedResponse>>,
    rest: Bytes,
}

impl FrameParts {
    pub(super) fn new(request: &OpenRequest, stream: Option<StreamHandle>, part_max: usize) -> Self {
        let connection = Arc::clone(request.connection());
        Self { connection, stream, part_max, response: None, rest: Bytes::new() }
    }

    /// Whether all parts of the last frame have been taken.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of bytes left of the last frame.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next part of the last frame. Called when the client has taken the part before.
    pub(super) fn next_part(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        self.part_sent();
        Some(self.split())
    }

    /// The first part of another frame, or the frame itself where it holds trailers.
    pub(super) fn first_part(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        self.part_sent();
        match frame.into_data() {
            Ok(data) => {
                self.rest = self.counted(data);
                Frame::data(self.split())
            }
            Err(trailers) => trailers,
        }
    }

    fn part_sent(&self) {
        if let Some(response) = &self.response {
            response.part_sent();
        }
    }

    fn split(&mut self) -> Bytes {
        if self.rest.len() <= self.part_max {
            take(&mut self.rest)
        } else {
            self.rest.split_to(self.part_max)
        }
    }

    fn counted(&mut self, data: Bytes) -> Bytes {
        if data.len() < COUNTED_MIN {
            return data;
        }
        if self.response.is_none() {
            self.response = BufferedResponse::new(&self.connection, self.stream.take());
        }
        match &self.response {
            Some(response) => response.count(data),
            None => data,
        }
    }
}
