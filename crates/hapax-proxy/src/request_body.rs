//! [`ClientBody`]: a request's body as the client sends it, with an idle timeout and a minimum rate.
//!
//! Time counts only while the body is polled: a slow upstream is not the client's fault.
//!
//! On shutdown, a body of which nothing was forwarded fails immediately, for nothing has begun. One of which the upstream
//! has the beginning may still arrive, with short pauses only.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::client_io::ConnectionState;
use crate::deadline::Deadline;
use crate::error::BoxError;

/// How long a sender may pause, and a client may take to close its connection, during shutdown.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// How slowly a body may arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyPace {
    pub(crate) idle: Duration,
    /// Bytes per second; 0 for any.
    pub(crate) rate_min: u64,
}

/// The body of a client's request.
#[derive(Debug)]
pub struct ClientBody {
    body: Incoming,
    pace: BodyPace,
    /// Set while a frame is awaited.
    pause: Deadline,
    /// The time that received frames were awaited for.
    waited: Duration,
    waiting_since: Option<Instant>,
    bytes: u64,
    connection: Arc<ConnectionState>,
    /// Set once a frame was not there when polled.
    shutdown: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Whether the pause is limited by the shutdown.
    is_shutting_down: bool,
    /// Whether the upstream may have the beginning of it.
    is_forwarding: bool,
}

/// Why a client's body is incomplete. The [`source`](std::error::Error::source) of errors downstream can be downcast to
/// it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientBodyError {
    /// The client paused for too long or was too slow.
    #[error("the client sent the body too slowly")]
    TooSlow,
    /// The listener shut down before anything of the body was forwarded.
    #[error("the listener shut down before the body was complete")]
    ShuttingDown,
    /// The connection or the stream broke off, or the framing is invalid.
    #[error("the body broke off")]
    Incomplete(#[source] BoxError),
}

impl ClientBody {
    pub(crate) fn new(body: Incoming, pace: BodyPace, connection: Arc<ConnectionState>) -> Self {
        Self {
            body,
            pace,
            pause: Deadline::default(),
            waited: Duration::ZERO,
            waiting_since: None,
            bytes: 0,
            connection,
            shutdown: None,
            is_shutting_down: false,
            is_forwarding: false,
        }
    }

    /// Marks the body as forwarded while it arrives: a shutdown then lets it finish. A service calls this before it passes
    /// the body on unread.
    pub fn begin_forwarding(&mut self) {
        self.is_forwarding = true;
    }

    /// Whether the listener shuts down; registers the task to be woken when it does.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> bool {
        let shutdown = self
            .shutdown
            .get_or_insert_with(|| Box::pin(self.connection.shutdown().clone().cancelled_owned()));
        shutdown.as_mut().poll(cx).is_ready()
    }

    /// Counts a frame; whether the client keeps the minimum rate. The first `idle` of waiting is not counted.
    fn keeps_pace(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let Some(since) = self.waiting_since.take() else { return true };
        self.pause.clear();
        self.waited += since.elapsed();
        let counted = self.waited.saturating_sub(self.pace.idle).as_secs();
        self.bytes >= self.pace.rate_min.saturating_mul(counted)
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = ClientBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientBodyError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                let keeps_pace = self.keeps_pace(bytes);
                Poll::Ready(Some(if keeps_pace { Ok(frame) } else { Err(ClientBodyError::TooSlow) }))
            }
            Poll::Ready(Some(Err(error))) => {
                Poll::Ready(Some(Err(ClientBodyError::Incomplete(error.into()))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                let is_shutting_down = self.poll_shutdown(cx);
                if is_shutting_down && !self.is_forwarding {
                    return Poll::Ready(Some(Err(ClientBodyError::ShuttingDown)));
                }
                if self.waiting_since.is_none() || is_shutting_down != self.is_shutting_down {
                    self.waiting_since.get_or_insert_with(Instant::now);
                    self.is_shutting_down = is_shutting_down;
                    let idle = self.pace.idle;
                    self.pause.set(if is_shutting_down { idle.min(SHUTDOWN_GRACE) } else { idle });
                }
                self.pause.poll_passed(cx).map(|()| Some(Err(ClientBodyError::TooSlow)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
