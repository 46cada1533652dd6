//! The body of an answer, which tells its connection when it has left.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::proxy::socket::Open;

pin_project! {
    /// The service's body, or none.
    pub(in crate::proxy) struct Answered<B> {
        #[pin]
        body: Option<B>,
        // Counts the request as open for as long as the body is there.
        _open: Option<Open>,
    }
}

impl<B> Answered<B> {
    pub(super) fn new(body: B, open: Open) -> Self {
        Self { body: Some(body), _open: Some(open) }
    }

    pub(super) fn nothing() -> Self {
        Self { body: None, _open: None }
    }
}

impl<B: Body<Data = Bytes>> Body for Answered<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.project().body.as_pin_mut().map_or(Poll::Ready(None), |body| body.poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}
