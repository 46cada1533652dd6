//! [`PacedBody`]: a response's body over HTTP/2, sent in parts with a timeout for each.
//!
//! By its flow-control window a client can stall one stream and keep its connection active. hyper then polls the body no
//! more, so no deadline inside the body would fire. A separate task reads the body and enforces the timeout.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::{self, Permit, Receiver, Sender};
use tokio::time::timeout;

use super::frame_parts::FrameParts;
use crate::client_io::OpenRequest;
use crate::error::BoxError;
use crate::response_budget::StreamHandle;

/// The size of a DATA frame unless the client allows larger ones: a part never splits what would go out as one frame.
const PART_MAX: usize = 16 * 1024;

/// The side that hyper polls.
#[derive(Debug)]
pub(super) struct PacedBody {
    parts: Receiver<Part>,
    hint: SizeHint,
    is_ended: bool,
}

#[derive(Debug)]
enum Part {
    Frame(Result<Frame<Bytes>, BoxError>),
    /// The last one, where the body knows that it is.
    Last(Frame<Bytes>),
    End,
}

/// The client read nothing of the response for too long.
#[derive(Debug, thiserror::Error)]
#[error("the client stalled the response")]
struct ClientStalled;

impl PacedBody {
    /// Sends this body in parts, each within `part_timeout`. The request stays open until the last part is taken.
    pub(super) fn new<B>(
        body: B,
        request: OpenRequest,
        stream: Option<StreamHandle>,
        part_timeout: Duration,
    ) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (sender, parts) = mpsc::channel(1);
        let hint = body.size_hint();
        let rest = FrameParts::new(&request, stream, PART_MAX);
        tokio::spawn(async move {
            if let Err(ClientStalled) = send_parts(body, rest, sender, part_timeout).await {
                tracing::debug!("abandoned a response that the client stalled");
                request.abandon_response();
            }
        });
        Self { parts, hint, is_ended: false }
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        let part = ready!(self.parts.poll_recv(cx));
        self.is_ended = !matches!(part, Some(Part::Frame(Ok(_))));
        Poll::Ready(match part {
            Some(Part::Frame(frame)) => Some(frame),
            Some(Part::Last(frame)) => Some(Ok(frame)),
            Some(Part::End) => None,
            // Abandoned. A regular end would mark the response as complete.
            None => Some(Err(ClientStalled.into())),
        })
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.is_ended
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

/// Reads the body as fast as the client takes it. The time that the body itself pauses does not count.
async fn send_parts<B>(
    body: B,
    mut rest: FrameParts,
    parts: Sender<Part>,
    part_timeout: Duration,
) -> Result<(), ClientStalled>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    {
        let mut body = pin!(body);
        loop {
            let Some(permit) = reserve(&parts, part_timeout).await? else { return Ok(()) };
            let frame = match rest.next_part() {
                Some(part) => Frame::data(part),
                None => {
                    let frame = tokio::select! {
                        biased;
                        () = parts.closed() => return Ok(()),
                        frame = poll_fn(|cx| body.as_mut().poll_frame(cx)) => frame,
                    };
                    match frame {
                        None => {
                            permit.send(Part::End);
                            break;
                        }
                        Some(Err(error)) => {
                            permit.send(Part::Frame(Err(error.into())));
                            break;
                        }
                        Some(Ok(frame)) => rest.first_part(frame),
                    }
                }
            };
            if rest.is_empty() && body.is_end_stream() {
                permit.send(Part::Last(frame));
                break;
            }
            permit.send(Part::Frame(Ok(frame)));
        }
    }
    // The body is dropped, with its resources. The last part may still be in the channel or at hyper.
    if reserve(&parts, part_timeout).await?.is_none() {
        return Ok(());
    }
    timeout(part_timeout, parts.closed()).await.map_err(|_| ClientStalled)
}

/// Space for the next part, once hyper has taken the one before. None when hyper dropped the body.
async fn reserve(
    parts: &Sender<Part>,
    part_timeout: Duration,
) -> Result<Option<Permit<'_, Part>>, ClientStalled> {
    timeout(part_timeout, parts.reserve()).await.map(Result::ok).map_err(|_| ClientStalled)
}
