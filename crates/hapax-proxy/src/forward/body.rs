//! [`ForwardBody`]: a response's body as the upstream sends it.
//!
//! Polling it drives its connection. Read to its end, it returns the connection to the pool; dropped earlier, it closes
//! the connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::deadline::Deadline;
use crate::error::BoxError;
use crate::upstream::{Http1Connection, UpstreamAddress};

/// The body of an upstream's response, or content of the proxy's own (`ForwardBody::from`).
#[derive(Debug)]
pub struct ForwardBody {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Fixed(Bytes),
    Http1 {
        body: Incoming,
        /// None once the connection is back in the pool.
        connection: Option<PooledConnection>,
        idle: Duration,
    },
    Http2 {
        body: Incoming,
        pause: Deadline,
        idle: Duration,
    },
}

/// A connection and the pool that it returns to.
type PooledConnection = (Box<Http1Connection>, Arc<UpstreamAddress>);

/// Why a response is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardBodyError {
    /// The upstream paused for too long.
    #[error("the upstream paused for too long")]
    TimedOut,
    /// The upstream's connection broke off.
    #[error("the upstream's response broke off")]
    Incomplete(#[source] BoxError),
}

impl From<Bytes> for ForwardBody {
    fn from(content: Bytes) -> Self {
        Self { kind: Kind::Fixed(content) }
    }
}

impl ForwardBody {
    pub(super) fn http1(
        body: Incoming,
        mut connection: Box<Http1Connection>,
        address: Arc<UpstreamAddress>,
        idle: Duration,
    ) -> Self {
        connection.set_deadline(idle);
        let mut connection = Some((connection, address));
        if body.is_end_stream() {
            return_to_pool(&mut connection);
        }
        Self { kind: Kind::Http1 { body, connection, idle } }
    }

    pub(super) fn http2(body: Incoming, idle: Duration) -> Self {
        Self { kind: Kind::Http2 { body, pause: Deadline::default(), idle } }
    }
}

/// Returns a connection whose exchange is over. One whose request is still being sent is closed.
fn return_to_pool(connection: &mut Option<PooledConnection>) {
    if let Some((connection, address)) = connection.take()
        && connection.is_ready()
    {
        address.keep(connection);
    }
}

type PolledFrame = Poll<Option<Result<Frame<Bytes>, ForwardBodyError>>>;

fn poll_http1(
    body: &mut Incoming,
    connection: &mut Option<PooledConnection>,
    idle: Duration,
    cx: &mut Context<'_>,
) -> PolledFrame {
    let mut polled = Pin::new(&mut *body).poll_frame(cx);
    if polled.is_pending()
        && let Some((connection, _)) = connection
    {
        // No other task drives the connection that the body comes from.
        connection.drive(cx);
        polled = Pin::new(&mut *body).poll_frame(cx);
    }
    let is_ended = match &polled {
        Poll::Ready(Some(Ok(_))) => body.is_end_stream(),
        Poll::Ready(None) => true,
        Poll::Ready(Some(Err(_))) => {
            *connection = None;
            false
        }
        Poll::Pending => {
            let late =
                connection.as_mut().map_or(Poll::Pending, |(connection, _)| connection.poll_deadline(cx));
            return late.map(|()| Some(Err(ForwardBodyError::TimedOut)));
        }
    };
    match connection {
        Some((used, _)) if is_ended => {
            used.drive(cx);
            return_to_pool(connection);
        }
        Some((used, _)) => used.set_deadline(idle),
        None => {}
    }
    polled.map_err(incomplete)
}

fn incomplete(error: hyper::Error) -> ForwardBodyError {
    ForwardBodyError::Incomplete(error.into())
}

impl Body for ForwardBody {
    type Data = Bytes;
    type Error = ForwardBodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        match &mut self.kind {
            Kind::Fixed(content) if content.is_empty() => Poll::Ready(None),
            Kind::Fixed(content) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(content))))),
            Kind::Http1 { body, connection, idle } => poll_http1(body, connection, *idle, cx),
            Kind::Http2 { body, pause, idle } => match Pin::new(body).poll_frame(cx) {
                Poll::Ready(frame) => {
                    pause.clear();
                    Poll::Ready(frame.map(|frame| frame.map_err(incomplete)))
                }
                Poll::Pending => {
                    if !pause.is_set() {
                        pause.set(*idle);
                    }
                    pause.poll_passed(cx).map(|()| Some(Err(ForwardBodyError::TimedOut)))
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Fixed(content) => content.is_empty(),
            Kind::Http1 { body, .. } | Kind::Http2 { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Fixed(content) => SizeHint::with_exact(content.len() as u64),
            Kind::Http1 { body, .. } | Kind::Http2 { body, .. } => body.size_hint(),
        }
    }
}
