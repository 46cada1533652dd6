//! [`Received`]: a request's body as it comes from the client, with an end to patience.
//!
//! A sender that pauses too long, or drips, fails like one that hangs up. The deadline is only looked at while
//! somebody waits for bytes: a slow upstream is not the sender's fault.
//!
//! Once the listener is to end, a body of which nothing was passed on is given up at once, for nothing was begun with
//! it. One that the origin has the beginning of may still come, without pauses.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::deadline::Deadline;
use super::socket::Progress;

/// How long a sender may pause, and a client may take to say goodbye, once the listener is to end.
pub(super) const PARTING: Duration = Duration::from_secs(1);

/// How long a sender of a body may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) idle: Duration,
    /// Bytes in a second; 0 for any.
    pub(super) rate_min: u64,
}

/// The body of a request.
#[derive(Debug)]
pub(crate) struct Received {
    body: Incoming,
    patience: Patience,
    /// Since somebody waits for the next frame.
    pause: Deadline,
    /// How long was waited for what came.
    waited: Duration,
    since: Option<tokio::time::Instant>,
    bytes: u64,
    progress: Arc<Progress>,
    /// Set once the next frame had to be waited for.
    stopping: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Whether the pause is short because the listener is to end.
    is_hurried: bool,
    /// Whether the origin may have the beginning of it.
    is_passing: bool,
}

/// Why a body is not whole.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The sender paused for too long or was too slow.
    TooSlow,
    /// The listener is to end, and nothing of the body was passed on.
    Stopping,
    /// The connection or the stream broke off, or its framing is wrong.
    CutShort(hyper::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooSlow => "the sender of the body was too slow",
            Self::Stopping => "the body was not whole when the process was asked to end",
            Self::CutShort(_) => "the body broke off",
        })
    }
}

impl Error for Broken {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::TooSlow | Self::Stopping => None,
            Self::CutShort(error) => Some(error),
        }
    }
}

impl Received {
    pub(super) fn new(body: Incoming, patience: Patience, progress: Arc<Progress>) -> Self {
        Self {
            body,
            patience,
            pause: Deadline::default(),
            waited: Duration::ZERO,
            since: None,
            bytes: 0,
            progress,
            stopping: None,
            is_hurried: false,
            is_passing: false,
        }
    }

    /// The origin gets it as it comes.
    pub(super) fn begin_passing(&mut self) {
        self.is_passing = true;
    }

    /// Looks whether the listener is to end, and has this task told when it is.
    fn is_stopping(&mut self, cx: &mut Context<'_>) -> bool {
        let stopping =
            self.stopping.get_or_insert_with(|| Box::pin(self.progress.stop().clone().cancelled_owned()));
        stopping.as_mut().poll(cx).is_ready()
    }

    /// Counts a frame, and tells whether the sender keeps the pace. The first pause is free.
    fn keeps_pace(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let Some(since) = self.since.take() else { return true };
        self.pause.clear();
        self.waited += since.elapsed();
        let counted = self.waited.saturating_sub(self.patience.idle).as_secs();
        self.bytes >= self.patience.rate_min.saturating_mul(counted)
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                Poll::Ready(Some(if self.keeps_pace(bytes) { Ok(frame) } else { Err(Broken::TooSlow) }))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(Broken::CutShort(error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                let is_stopping = self.is_stopping(cx);
                if is_stopping && !self.is_passing {
                    return Poll::Ready(Some(Err(Broken::Stopping)));
                }
                if self.since.is_none() || is_stopping != self.is_hurried {
                    self.since.get_or_insert_with(tokio::time::Instant::now);
                    self.is_hurried = is_stopping;
                    let idle = self.patience.idle;
                    self.pause.within(if is_stopping { idle.min(PARTING) } else { idle });
                }
                self.pause.poll_passed(cx).map(|()| Some(Err(Broken::TooSlow)))
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
