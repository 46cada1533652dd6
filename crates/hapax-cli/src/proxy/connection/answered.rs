//! The body of an answer, which tells its connection when it has left.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::offered::{BoxError, Offered};
use crate::proxy::socket::Open;

pin_project! {
    /// The service's body, or the words of a refusal.
    #[project = AnsweredProjection]
    pub(in crate::proxy) enum Answered<B> {
        /// As it comes. The request counts as open for as long as the body is there.
        Passed { #[pin] body: B, _open: Open },
        /// In pieces that must be taken.
        Offered { offered: Offered },
        Words { words: Option<Bytes> },
    }
}

impl<B> Answered<B> {
    /// The body over HTTP/1, whose pace the connection watches.
    pub(super) fn new(body: B, open: Open) -> Self {
        Self::Passed { body, _open: open }
    }

    /// The body over HTTP/2, each piece of which may wait for so long.
    pub(super) fn offered(body: B, open: Open, patience: Duration) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::new(body, open);
        }
        Self::Offered { offered: Offered::new(body, open, patience) }
    }

    pub(super) fn words(words: Bytes) -> Self {
        Self::Words { words: Some(words).filter(|words| !words.is_empty()) }
    }
}

impl<B> Body for Answered<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project() {
            AnsweredProjection::Passed { body, .. } => {
                body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
            AnsweredProjection::Offered { offered } => offered.poll_frame(cx),
            AnsweredProjection::Words { words } => {
                Poll::Ready(words.take().map(|words| Ok(Frame::data(words))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passed { body, .. } => body.is_end_stream(),
            Self::Offered { offered } => offered.is_end_stream(),
            Self::Words { words } => words.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Passed { body, .. } => body.size_hint(),
            Self::Offered { offered } => offered.size_hint(),
            Self::Words { words } => SizeHint::with_exact(words.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
