//! [`OriginBody`]: a response body that is whole, streamed or breaks off.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// The response body of an [`Origin`](super::Origin).
#[derive(Debug)]
pub struct OriginBody {
    pieces: VecDeque<Piece>,
    /// The announced length; none for a stream.
    length: Option<u64>,
}

#[derive(Debug)]
enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    /// No data yet, so that what came before is sent.
    Pause,
    Break,
}

impl OriginBody {
    /// One piece with an announced length.
    pub(super) fn whole(content: Bytes) -> Self {
        let length = Some(content.len() as u64);
        let pieces = if content.is_empty() { VecDeque::new() } else { [Piece::Data(content)].into() };
        Self { pieces, length }
    }

    /// Two pieces and `trailers`, without an announced length.
    pub(super) fn streamed(content: Bytes, trailers: HeaderMap) -> Self {
        let mut pieces = halves(content);
        if !trailers.is_empty() {
            pieces.push_back(Piece::Trailers(trailers));
        }
        Self { pieces, length: None }
    }

    /// The first half, then an error.
    pub(super) fn cut(content: Bytes) -> Self {
        let mut pieces = halves(content);
        pieces.truncate(1);
        pieces.extend([Piece::Pause, Piece::Break]);
        Self { pieces, length: None }
    }
}

fn halves(mut content: Bytes) -> VecDeque<Piece> {
    let first = content.split_to(content.len().div_ceil(2));
    [first, content].into_iter().filter(|half| !half.is_empty()).map(Piece::Data).collect()
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(piece) = self.pieces.pop_front() else { return Poll::Ready(None) };
        Poll::Ready(Some(match piece {
            Piece::Data(data) => Ok(Frame::data(data)),
            Piece::Trailers(trailers) => Ok(Frame::trailers(trailers)),
            Piece::Pause => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Piece::Break => Err(io::Error::other("the script cuts the body off")),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
