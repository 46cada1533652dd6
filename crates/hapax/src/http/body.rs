//! The body types of requests to the inner service and of responses to the client.
//!
//! A body that passes unchanged is a variant of an enum, without a box around it.

pub(super) mod read;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use self::read::{BufferedBody, Reservation};

pin_project! {
    /// The request body for the inner service: the client's own, or a buffered one.
    pub struct RequestBody<B> {
        #[pin]
        kind: RequestKind<B>,
    }
}

pin_project! {
    #[project = RequestProjection]
    enum RequestKind<B> {
        Passed { #[pin] body: B },
        Buffered { rest: BufferedRest },
    }
}

pin_project! {
    /// The response body for the client: the inner service's own, or a buffered one.
    pub struct ResponseBody<B> {
        #[pin]
        kind: ResponseKind<B>,
    }
}

pin_project! {
    #[project = ResponseProjection]
    enum ResponseKind<B> {
        Passed { #[pin] body: B },
        Whole { rest: BufferedRest },
        // Too large to be recorded: the part that was read, then the rest as it arrives.
        Streamed { read: Bytes, body: Pin<Box<B>> },
    }
}

/// Boxed because it is rare and bodies are moved often.
pub(crate) type Trailers = Option<Box<HeaderMap>>;

/// The unsent rest of a buffered body.
#[derive(Default)]
struct BufferedRest {
    data: Bytes,
    trailers: Trailers,
    /// Returned to the budget when the body is dropped.
    _reservation: Option<Reservation>,
}

impl BufferedRest {
    fn next<E>(&mut self) -> Option<Result<Frame<Bytes>, E>> {
        let data = std::mem::take(&mut self.data);
        if !data.is_empty() {
            return Some(Ok(Frame::data(data)));
        }
        self.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers)))
    }

    fn is_end(&self) -> bool {
        self.data.is_empty() && self.trailers.is_none()
    }

    /// With trailers the size is unknown: HTTP/1.1 can send them only after chunks.
    fn size_hint(&self) -> SizeHint {
        let length = self.data.len() as u64;
        if self.trailers.is_none() {
            return SizeHint::with_exact(length);
        }
        let mut hint = SizeHint::new();
        hint.set_lower(length);
        hint
    }
}

impl<B> RequestBody<B> {
    pub(crate) fn passed(body: B) -> Self {
        Self { kind: RequestKind::Passed { body } }
    }

    pub(crate) fn read(read: BufferedBody) -> Self {
        let rest = BufferedRest { data: read.data, trailers: read.trailers, _reservation: read.reservation };
        Self { kind: RequestKind::Buffered { rest } }
    }

    /// The client's own body, if the layer has not read it.
    pub fn passed_mut(&mut self) -> Option<&mut B> {
        match &mut self.kind {
            RequestKind::Passed { body } => Some(body),
            RequestKind::Buffered { .. } => None,
        }
    }

    /// The client's own body, if it was passed unchanged.
    #[cfg(feature = "axum")]
    pub(super) fn into_passed(self) -> Result<B, Self> {
        match self.kind {
            RequestKind::Passed { body } => Ok(body),
            kind => Err(Self { kind }),
        }
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn passed(body: B) -> Self {
        Self { kind: ResponseKind::Passed { body } }
    }

    pub(crate) fn whole(data: Bytes, trailers: Trailers) -> Self {
        Self { kind: ResponseKind::Whole { rest: BufferedRest { data, trailers, _reservation: None } } }
    }

    pub(crate) fn streamed(read: Bytes, body: Pin<Box<B>>) -> Self {
        Self { kind: ResponseKind::Streamed { read, body } }
    }

    /// The inner service's own body, if it was passed unchanged.
    #[cfg(feature = "axum")]
    pub(super) fn into_passed(self) -> Result<B, Self> {
        match self.kind {
            ResponseKind::Passed { body } => Ok(body),
            kind => Err(Self { kind }),
        }
    }
}

/// The client's own body.
impl<B> From<B> for RequestBody<B> {
    fn from(body: B) -> Self {
        Self::passed(body)
    }
}

/// A buffered body.
impl<B> From<Bytes> for ResponseBody<B> {
    fn from(data: Bytes) -> Self {
        Self::whole(data, None)
    }
}

impl<B: Body<Data = Bytes>> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.project().kind.project() {
            RequestProjection::Passed { body } => body.poll_frame(cx),
            RequestProjection::Buffered { rest } => Poll::Ready(rest.next()),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            RequestKind::Passed { body } => body.is_end_stream(),
            RequestKind::Buffered { rest } => rest.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            RequestKind::Passed { body } => body.size_hint(),
            RequestKind::Buffered { rest } => rest.size_hint(),
        }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.project().kind.project() {
            ResponseProjection::Passed { body } => body.poll_frame(cx),
            ResponseProjection::Whole { rest } => Poll::Ready(rest.next()),
            ResponseProjection::Streamed { read, body } if read.is_empty() => body.as_mut().poll_frame(cx),
            ResponseProjection::Streamed { read, .. } => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(read)))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            ResponseKind::Passed { body } => body.is_end_stream(),
            ResponseKind::Whole { rest } => rest.is_end(),
            ResponseKind::Streamed { read, body } => read.is_empty() && body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            ResponseKind::Passed { body } => body.size_hint(),
            ResponseKind::Whole { rest } => rest.size_hint(),
            ResponseKind::Streamed { read, body } => {
                let (read, rest) = (read.len() as u64, body.size_hint());
                let mut hint = SizeHint::new();
                hint.set_lower(rest.lower().saturating_add(read));
                if let Some(upper) = rest.upper() {
                    hint.set_upper(upper.saturating_add(read));
                }
                hint
            }
        }
    }
}

impl<B> fmt::Debug for RequestBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestBody")
    }
}

impl<B> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseBody")
    }
}
