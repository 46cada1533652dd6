//! [`ForwardBody`]: an answer's body as it comes from the upstream.
//!
//! Reading it drives its connection. Once it was read to its end, the connection is given back; one that is left
//! earlier is closed with it.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::proxy::deadline::Deadline;
use crate::proxy::upstream::{Address, Http1};

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct ForwardBody {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    Http1 {
        body: Incoming,
        /// None once the connection was given back.
        used: Option<(Box<Http1>, Arc<Address>)>,
        idle: Duration,
    },
    Http2 {
        body: Incoming,
        pause: Deadline,
        idle: Duration,
    },
}

/// Why an answer is not whole.
#[derive(Debug)]
pub(crate) enum CutShort {
    /// The upstream paused for too long.
    Late,
    /// Its connection broke off.
    Lost(hyper::Error),
}

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Late => "the upstream paused for too long",
            Self::Lost(_) => "the upstream's answer broke off",
        })
    }
}

impl Error for CutShort {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Late => None,
            Self::Lost(error) => Some(error),
        }
    }
}

impl ForwardBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(bytes) }
    }

    pub(super) fn http1(body: Incoming, mut link: Box<Http1>, address: Arc<Address>, idle: Duration) -> Self {
        link.expect_within(idle);
        let mut used = Some((link, address));
        if body.is_end_stream() {
            give_back(&mut used);
        }
        Self { kind: Kind::Http1 { body, used, idle } }
    }

    pub(super) fn http2(body: Incoming, idle: Duration) -> Self {
        Self { kind: Kind::Http2 { body, pause: Deadline::default(), idle } }
    }
}

/// Gives a connection back, if its exchange is over. One whose request is still being sent cannot be used again.
fn give_back(used: &mut Option<(Box<Http1>, Arc<Address>)>) {
    if let Some((link, address)) = used.take()
        && link.is_free()
    {
        address.keep(link);
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, CutShort>>>;

fn poll_http1(
    body: &mut Incoming,
    used: &mut Option<(Box<Http1>, Arc<Address>)>,
    idle: Duration,
    cx: &mut Context<'_>,
) -> Polled {
    let mut polled = Pin::new(&mut *body).poll_frame(cx);
    if polled.is_pending()
        && let Some((link, _)) = used
    {
        // The body comes by the connection, which nobody else drives.
        link.drive(cx);
        polled = Pin::new(&mut *body).poll_frame(cx);
    }
    let ended = match &polled {
        Poll::Ready(Some(Ok(_))) => body.is_end_stream(),
        Poll::Ready(None) => true,
        Poll::Ready(Some(Err(_))) => {
            *used = None;
            false
        }
        Poll::Pending => {
            let late = used.as_mut().map_or(Poll::Pending, |(link, _)| link.poll_late(cx));
            return late.map(|()| Some(Err(CutShort::Late)));
        }
    };
    match used {
        Some((link, _)) if ended => {
            link.drive(cx);
            give_back(used);
        }
        Some((link, _)) => link.expect_within(idle),
        None => {}
    }
    polled.map_err(CutShort::Lost)
}

impl Body for ForwardBody {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        match &mut self.kind {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Http1 { body, used, idle } => poll_http1(body, used, *idle, cx),
            Kind::Http2 { body, pause, idle } => match Pin::new(body).poll_frame(cx) {
                Poll::Ready(frame) => {
                    pause.clear();
                    Poll::Ready(frame.map(|frame| frame.map_err(CutShort::Lost)))
                }
                Poll::Pending => {
                    if !pause.is_set() {
                        pause.within(*idle);
                    }
                    pause.poll_passed(cx).map(|()| Some(Err(CutShort::Late)))
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Http1 { body, .. } | Kind::Http2 { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Http1 { body, .. } | Kind::Http2 { body, .. } => body.size_hint(),
        }
    }
}
