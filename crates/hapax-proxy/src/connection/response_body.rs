//! The body of an answer, which tells its connection when it has left.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::offered::{BoxError, Offered};
use super::pieces::Pieces;
use crate::proxy::socket::Open;
use crate::proxy::untaken::{COUNTED_MIN, Stream};

/// Over HTTP/1, what the body gives goes on in one piece: the connection watches its own pace.
const PIECE_MAX: usize = usize::MAX;

pin_project! {
    /// The service's body, or the words of a refusal.
    #[project = AnsweredProjection]
    pub(in crate::proxy) enum Answered<B> {
        /// As it comes. The request counts as open for as long as the body is there.
        Passed { #[pin] body: B, open: Open, pieces: Option<Box<Pieces>> },
        /// In pieces that must be taken.
        Offered { offered: Offered },
        Words { words: Option<Bytes> },
    }
}

impl<B> Answered<B> {
    /// The body over HTTP/1, whose pace the connection watches.
    pub(super) fn new(body: B, open: Open) -> Self {
        Self::Passed { body, open, pieces: None }
    }

    /// The body over HTTP/2 on this stream, each piece of which may wait for so long.
    pub(super) fn offered(body: B, open: Open, stream: Option<Stream>, patience: Duration) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::new(body, open);
        }
        Self::Offered { offered: Offered::new(body, open, stream, patience) }
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
            AnsweredProjection::Passed { body, open, pieces } => {
                if let Some(piece) = pieces.as_mut().and_then(|pieces| pieces.next()) {
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                let Some(frame) = ready!(body.poll_frame(cx)) else { return Poll::Ready(None) };
                let frame = frame.map_err(Into::into)?;
                if pieces.is_none() && frame.data_ref().is_none_or(|data| data.len() < COUNTED_MIN) {
                    return Poll::Ready(Some(Ok(frame)));
                }
                let pieces = pieces.get_or_insert_with(|| Box::new(Pieces::new(open, None, PIECE_MAX)));
                Poll::Ready(Some(Ok(pieces.first(frame))))
            }
            AnsweredProjection::Offered { offered } => offered.poll_frame(cx),
            AnsweredProjection::Words { words } => {
                Poll::Ready(words.take().map(|words| Ok(Frame::data(words))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passed { body, pieces, .. } => {
                body.is_end_stream() && pieces.as_ref().is_none_or(|pieces| pieces.is_empty())
            }
            Self::Offered { offered } => offered.is_end_stream(),
            Self::Words { words } => words.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Passed { body, pieces, .. } => {
                let (rest, mut hint) =
                    (pieces.as_ref().map_or(0, |pieces| pieces.len()) as u64, body.size_hint());
                if let Some(upper) = hint.upper() {
                    hint.set_upper(upper.saturating_add(rest));
                }
                hint.set_lower(hint.lower().saturating_add(rest));
                hint
            }
            Self::Offered { offered } => offered.size_hint(),
            Self::Words { words } => SizeHint::with_exact(words.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
