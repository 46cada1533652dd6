//! The body of an answer, which tells its connection when it has left.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::proxy::socket::Open;

pin_project! {
    /// The service's body, or the words of a refusal.
    pub(in crate::proxy) struct Answered<B> {
        #[pin]
        body: Option<B>,
        words: Option<Bytes>,
        // Counts the request as open for as long as the body is there.
        _open: Option<Open>,
    }
}

impl<B> Answered<B> {
    pub(super) fn new(body: B, open: Open) -> Self {
        Self { body: Some(body), words: None, _open: Some(open) }
    }

    pub(super) fn words(words: Bytes) -> Self {
        Self { body: None, words: Some(words).filter(|words| !words.is_empty()), _open: None }
    }
}

impl<B: Body<Data = Bytes>> Body for Answered<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        match this.body.as_pin_mut() {
            Some(body) => body.poll_frame(cx),
            None => Poll::Ready(this.words.take().map(|words| Ok(Frame::data(words)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.words.is_none() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let words = self.words.as_ref().map_or(0, |words| words.len() as u64);
        self.body.as_ref().map_or(SizeHint::with_exact(words), Body::size_hint)
    }
}
