//! [`Offered`]: an answer's body over HTTP/2, in pieces. Whoever takes none for too long loses the rest.
//!
//! By its flow control a client can leave one answer where it is and keep its connection lively. hyper then asks for
//! nothing more, and nothing that it polls could watch the time. So a task of its own reads the body, and does.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::{self, Permit, Receiver, Sender};
use tokio::time::timeout;

use super::pieces::Pieces;
use crate::proxy::socket::Open;
use crate::proxy::untaken::Stream;

/// The most bytes of a piece: those of a frame, unless a client asks for larger ones. So nothing is cut that would
/// have gone out as one.
const PIECE_MAX: usize = 16 * 1024;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// What hyper sees of the body.
#[derive(Debug)]
pub(super) struct Offered {
    pieces: Receiver<Piece>,
    hint: SizeHint,
    is_ended: bool,
}

#[derive(Debug)]
enum Piece {
    Frame(Result<Frame<Bytes>, BoxError>),
    /// The last one, where the body knows that it is.
    Last(Frame<Bytes>),
    End,
}

/// The client took nothing of its answer for too long.
#[derive(Debug)]
struct NotTaken;

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client took nothing of its answer")
    }
}

impl Error for NotTaken {}

impl Offered {
    /// Offers this body, each piece for so long. The request is open until the last one is taken.
    pub(super) fn new<B>(body: B, open: Open, stream: Option<Stream>, patience: Duration) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (sender, pieces) = mpsc::channel(1);
        let hint = body.size_hint();
        let rest = Pieces::new(&open, stream, PIECE_MAX);
        tokio::spawn(async move {
            if let Err(NotTaken) = offer(body, rest, sender, patience).await {
                tracing::debug!("gave up an answer that its client does not take");
                open.give_up();
            }
        });
        Self { pieces, hint, is_ended: false }
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        let piece = ready!(self.pieces.poll_recv(cx));
        self.is_ended = !matches!(piece, Some(Piece::Frame(Ok(_))));
        Poll::Ready(match piece {
            Some(Piece::Frame(frame)) => Some(frame),
            Some(Piece::Last(frame)) => Some(Ok(frame)),
            Some(Piece::End) => None,
            // It was given up. An end would say that this is all of it.
            None => Some(Err(NotTaken.into())),
        })
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.is_ended
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

/// Reads the body as fast as it is taken. Nobody is late while the body itself pauses.
async fn offer<B>(
    body: B,
    mut rest: Pieces,
    pieces: Sender<Piece>,
    patience: Duration,
) -> Result<(), NotTaken>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    {
        let mut body = pin!(body);
        loop {
            let Some(place) = place(&pieces, patience).await? else { return Ok(()) };
            let frame = match rest.next() {
                Some(piece) => Frame::data(piece),
                None => {
                    let frame = tokio::select! {
                        biased;
                        () = pieces.closed() => return Ok(()),
                        frame = poll_fn(|cx| body.as_mut().poll_frame(cx)) => frame,
                    };
                    match frame {
                        None => {
                            place.send(Piece::End);
                            break;
                        }
                        Some(Err(error)) => {
                            place.send(Piece::Frame(Err(error.into())));
                            break;
                        }
                        Some(Ok(frame)) => rest.first(frame),
                    }
                }
            };
            if rest.is_empty() && body.is_end_stream() {
                place.send(Piece::Last(frame));
                break;
            }
            place.send(Piece::Frame(Ok(frame)));
        }
    }
    // The body is gone, and what was kept for it. The last piece may still wait in the place or at hyper.
    if place(&pieces, patience).await?.is_none() {
        return Ok(());
    }
    timeout(patience, pieces.closed()).await.map_err(|_| NotTaken)
}

/// A place for the next piece, once hyper has taken the one before. None when nobody wants any more.
async fn place(pieces: &Sender<Piece>, patience: Duration) -> Result<Option<Permit<'_, Piece>>, NotTaken> {
    timeout(patience, pieces.reserve()).await.map(Result::ok).map_err(|_| NotTaken)
}
