//! The body of a request on its way to the upstream, and how much of it has left.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hapax::http::RequestBody;
use http_body::{Body, Frame, SizeHint};

use crate::proxy::received::{Broken, Received};

/// A request's body. While it is being sent, nobody expects an answer yet.
#[derive(Debug)]
pub(in crate::proxy) struct Outgoing {
    /// None for a request of our own, which has no body.
    body: Option<RequestBody<Received>>,
    frames: Option<Frames>,
}

/// How many frames of a body were taken.
#[derive(Clone, Debug)]
pub(super) struct Frames(Arc<AtomicUsize>);

impl Frames {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Outgoing {
    pub(in crate::proxy) fn new(body: RequestBody<Received>) -> Self {
        // What has no body needs no counter.
        let frames = (!body.is_end_stream()).then(|| Frames(Arc::default()));
        Self { body: Some(body), frames }
    }

    pub(super) fn nothing() -> Self {
        Self { body: None, frames: None }
    }

    pub(super) fn frames(&self) -> Option<Frames> {
        self.frames.clone()
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
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
