//! The body of a request on its way to the upstream, and how much of it has been sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

use crate::error::BoxError;

/// A request's body. While it is being sent, the response timeout does not apply.
#[derive(Debug)]
pub(crate) struct OutgoingBody {
    /// None for an empty body.
    body: Option<UnsyncBoxBody<Bytes, BoxError>>,
    frames: Option<FrameCounter>,
}

/// The number of frames of a body that were sent.
#[derive(Clone, Debug)]
pub(super) struct FrameCounter(Arc<AtomicUsize>);

impl FrameCounter {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl OutgoingBody {
    pub(crate) fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // An empty body takes no memory.
        if body.is_end_stream() {
            return Self::empty();
        }
        let body = body.map_err(Into::into).boxed_unsync();
        Self { body: Some(body), frames: Some(FrameCounter(Arc::default())) }
    }

    pub(super) fn empty() -> Self {
        Self { body: None, frames: None }
    }

    pub(super) fn frames(&self) -> Option<FrameCounter> {
        self.frames.clone()
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if let (Poll::Ready(_), Some(frames)) = (&polled, &self.frames) {
            frames.0.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}
