//! One connection to an upstream.
//!
//! An HTTP/1.1 connection is driven by whoever waits for its answer, in the same task: no other task has to be woken
//! for a request, and none for its answer. While nobody uses it, nobody drives it; whether it is still open is found
//! out when it is taken up again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::TokioIo;
use tokio::runtime::{self, Handle};
use tokio::time::timeout;

use super::connect::Stream;
use super::outgoing::{Frames, Outgoing};
use super::room::Place;
use crate::proxy::deadline::Deadline;

/// A connection.
#[derive(Debug)]
pub(super) enum Link {
    Http1(Box<Http1>),
    Http2(Http2),
}

/// Why a connection gave no answer.
#[derive(Debug)]
pub(in crate::proxy) enum Unanswered {
    /// Nothing was sent, and here is the request.
    HandedBack(Box<Request<Outgoing>>),
    Late,
    Lost(hyper::Error),
}

impl From<TrySendError<Request<Outgoing>>> for Unanswered {
    fn from(mut error: TrySendError<Request<Outgoing>>) -> Self {
        match error.take_message() {
            Some(request) => Self::HandedBack(Box::new(request)),
            None => Self::Lost(error.into_error()),
        }
    }
}

/// A connection that has one request at a time.
#[derive(Debug)]
pub(in crate::proxy) struct Http1 {
    sender: http1::SendRequest<Outgoing>,
    connection: Driven,
    deadline: Deadline,
    /// While it is in use.
    place: Option<Place>,
    /// Which it was opened in.
    runtime: runtime::Id,
}

/// The connection's own part of the work.
#[derive(Debug)]
struct Driven {
    connection: Option<http1::Connection<TokioIo<Stream>, Outgoing>>,
    has_ended: bool,
}

impl Driven {
    /// Lets the connection do what there is to do. How it ended is told by what was asked of it.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = self.connection.as_mut().filter(|_| !self.has_ended) {
            self.has_ended = Pin::new(connection).poll(cx).is_ready();
        }
    }
}

impl Http1 {
    pub(super) fn new(
        sender: http1::SendRequest<Outgoing>,
        connection: http1::Connection<TokioIo<Stream>, Outgoing>,
    ) -> Self {
        let connection = Driven { connection: Some(connection), has_ended: false };
        Self {
            sender,
            connection,
            deadline: Deadline::default(),
            place: None,
            runtime: Handle::current().id(),
        }
    }

    pub(in crate::proxy) fn drive(&mut self, cx: &mut Context<'_>) {
        self.connection.drive(cx);
    }

    /// Counts it as one that is in use, until it is closed or [vacated](Self::vacate).
    pub(super) fn occupy(&mut self, place: Option<Place>) {
        self.place = place;
    }

    /// The runtime that is told of its bytes.
    pub(super) fn runtime(&self) -> runtime::Id {
        self.runtime
    }

    pub(super) fn vacate(&mut self) -> Option<Place> {
        self.place.take()
    }

    /// Whether it can take a request, as far as is known here. It wakes nobody until it is driven again: a request that is
    /// handed to it would wake the task that does so.
    pub(super) fn is_open(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.is_free()
    }

    /// Whether the last exchange is over on both sides.
    pub(in crate::proxy) fn is_free(&self) -> bool {
        !self.connection.has_ended && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        request: Box<Request<Outgoing>>,
        within: Duration,
    ) -> Result<Response<Incoming>, Unanswered> {
        let mut upload = Upload::of(&request);
        self.deadline.within(within);
        let mut answer = pin!(self.sender.try_send_request(*request));
        let (driven, deadline) = (&mut self.connection, &mut self.deadline);
        poll_fn(|cx| {
            driven.drive(cx);
            let mut answered = answer.as_mut().poll(cx);
            if answered.is_pending() && driven.has_ended {
                // A request that the connection did not take is handed back when it is dropped.
                driven.connection = None;
                answered = answer.as_mut().poll(cx);
            }
            if let Poll::Ready(answer) = answered {
                return Poll::Ready(answer.map_err(Unanswered::from));
            }
            while deadline.poll_passed(cx).is_ready() {
                if !upload.goes_on() {
                    return Poll::Ready(Err(Unanswered::Late));
                }
                deadline.within(within);
            }
            Poll::Pending
        })
        .await
    }

    /// Takes the socket of a connection whose upstream agreed to another protocol, what came by it already, and its
    /// place.
    pub(in crate::proxy) async fn into_socket(mut self: Box<Self>) -> Option<(Stream, Bytes, Option<Place>)> {
        poll_fn(|cx| {
            self.drive(cx);
            if self.connection.has_ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let parts = self.connection.connection.take()?.into_parts();
        Some((parts.io.into_inner(), parts.read_buf, self.place.take()))
    }

    /// Sets how long the upstream may pause from now on.
    pub(in crate::proxy) fn expect_within(&mut self, span: Duration) {
        self.deadline.within(span);
    }

    /// Ready when the upstream paused for too long.
    pub(in crate::proxy) fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.deadline.poll_passed(cx)
    }
}

/// A connection that has many.
#[derive(Clone, Debug)]
pub(super) struct Http2 {
    sender: http2::SendRequest<Outgoing>,
}

impl Http2 {
    pub(super) fn new(sender: http2::SendRequest<Outgoing>) -> Self {
        Self { sender }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    pub(super) async fn send(
        &mut self,
        request: Box<Request<Outgoing>>,
        within: Duration,
    ) -> Result<Response<Incoming>, Unanswered> {
        let mut upload = Upload::of(&request);
        let mut answer = pin!(self.sender.try_send_request(*request));
        loop {
            match timeout(within, answer.as_mut()).await {
                Ok(answer) => return answer.map_err(Unanswered::from),
                Err(_) if upload.goes_on() => {}
                Err(_) => return Err(Unanswered::Late),
            }
        }
    }
}

/// Whether a request is still being sent.
struct Upload {
    frames: Option<Frames>,
    seen: usize,
}

impl Upload {
    fn of(request: &Request<Outgoing>) -> Self {
        Self { frames: request.body().frames(), seen: 0 }
    }

    /// Whether more was sent since this was asked last.
    fn goes_on(&mut self) -> bool {
        let sent = self.frames.as_ref().map_or(0, Frames::count);
        std::mem::replace(&mut self.seen, sent) != sent
    }
}
