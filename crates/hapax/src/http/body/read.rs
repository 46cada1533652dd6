//! Bounded reading of bodies: requests within a limit per request and a budget per process, responses within the size
//! that may be recorded.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http_body::Body;

use super::Trailers;

/// The bytes of request bodies that one process buffers at a time.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    left: AtomicUsize,
}

impl BodyBudget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(bytes_max) })
    }

    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// A reservation in a [`BodyBudget`], returned when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

impl Reservation {
    /// Extends the reservation to `bytes` in total; false if the budget is exhausted.
    fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let is_granted = more == 0 || self.budget.take(more);
        if is_granted {
            self.bytes += more;
        }
        is_granted
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// A buffered request body.
#[derive(Debug, Default)]
pub(crate) struct BufferedBody {
    pub(crate) data: Bytes,
    pub(crate) trailers: Trailers,
    pub(crate) reservation: Option<Reservation>,
}

/// Why a request body was not read completely. Nothing was claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadFault {
    TooLarge,
    NoRoom,
    CutShort,
}

/// Reads a request body of at most `bytes_max`. A body whose length differs from `announced` is incomplete.
pub(crate) async fn read<B: Body<Data = Bytes>>(
    body: B,
    announced: Option<u64>,
    bytes_max: usize,
    budget: &Arc<BodyBudget>,
) -> Result<BufferedBody, ReadFault> {
    if body.is_end_stream() && announced.is_none_or(|length| length == 0) {
        return Ok(BufferedBody::default());
    }
    if announced.or(body.size_hint().exact()).is_some_and(|length| length > bytes_max as u64) {
        return Err(ReadFault::TooLarge);
    }
    let mut reservation = Reservation { budget: budget.clone(), bytes: 0 };
    let mut body = pin!(body);
    let mut data = ChunkBuffer::default();
    let mut trailers = None;
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| ReadFault::CutShort)?;
        match frame.into_data() {
            Ok(chunk) => {
                let length = data.len() + chunk.len();
                if length > bytes_max {
                    return Err(ReadFault::TooLarge);
                }
                if !reservation.grow_to(length) {
                    return Err(ReadFault::NoRoom);
                }
                data.push(chunk);
            }
            Err(frame) => trailers = frame.into_trailers().ok().map(Box::new),
        }
    }
    let data = data.finish();
    if announced.is_some_and(|length| length != data.len() as u64) {
        return Err(ReadFault::CutShort);
    }
    Ok(BufferedBody { data, trailers, reservation: Some(reservation) })
}

/// The result of reading a response body.
pub(crate) enum Collected<B> {
    Whole { data: Bytes, trailers: Trailers },
    TooLarge { read: Bytes, body: Pin<Box<B>> },
    CutShort,
}

/// Reads a response body of at most `bytes_max`. A body whose length differs from `announced` is incomplete; of a
/// larger one, only as much is read as detects it.
pub(crate) async fn collect<B: Body<Data = Bytes>>(
    body: B,
    announced: Option<u64>,
    bytes_max: usize,
) -> Collected<B> {
    if body.is_end_stream() && announced.is_none_or(|length| length == 0) {
        return Collected::Whole { data: Bytes::new(), trailers: None };
    }
    let mut body = Box::pin(body);
    if body.size_hint().lower() > bytes_max as u64 {
        return Collected::TooLarge { read: Bytes::new(), body };
    }
    let mut data = ChunkBuffer::default();
    let mut trailers = None;
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Ok(frame) = frame else { return Collected::CutShort };
        match frame.into_data() {
            Ok(chunk) => {
                data.push(chunk);
                if data.len() > bytes_max {
                    return Collected::TooLarge { read: data.finish(), body };
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok().map(Box::new),
        }
    }
    let data = data.finish();
    match announced {
        Some(length) if length != data.len() as u64 => Collected::CutShort,
        _ => Collected::Whole { data, trailers },
    }
}

/// The value of `Content-Length`.
pub(crate) fn announced_length(content_length: Option<&HeaderValue>) -> Option<u64> {
    content_length?.to_str().ok()?.parse().ok()
}

/// Concatenated chunks; a single one is not copied.
#[derive(Default)]
enum ChunkBuffer {
    #[default]
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl ChunkBuffer {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(chunk) => chunk.len(),
            Self::Many(chunks) => chunks.len(),
        }
    }

    fn push(&mut self, chunk: Bytes) {
        match self {
            Self::Nothing => *self = Self::One(chunk),
            Self::One(first) => {
                let mut chunks = BytesMut::with_capacity(2 * (first.len() + chunk.len()));
                chunks.extend_from_slice(first);
                chunks.extend_from_slice(&chunk);
                *self = Self::Many(chunks);
            }
            Self::Many(chunks) => chunks.extend_from_slice(&chunk),
        }
    }

    fn finish(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(chunk) => chunk,
            Self::Many(chunks) => chunks.freeze(),
        }
    }
}
