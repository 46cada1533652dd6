//! One connection to an upstream.
//!
//! An HTTP/1.1 connection is driven by the task that waits for its response: no other task has to be woken for a request
//! or its response. An idle connection is not driven; whether it is still open is checked when it is reused.

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

use super::connect::UpstreamStream;
use super::connection_slots::ConnectionSlot;
use super::outgoing_body::{FrameCounter, OutgoingBody};
use crate::deadline::Deadline;

/// A connection.
#[derive(Debug)]
pub(super) enum UpstreamConnection {
    Http1(Box<Http1Connection>),
    Http2(Http2Connection),
}

/// Why a connection gave no response.
#[derive(Debug)]
pub(crate) enum ConnectionError {
    /// Nothing was sent; this is the request.
    HandedBack(Box<Request<OutgoingBody>>),
    TimedOut,
    Lost(hyper::Error),
}

impl From<TrySendError<Request<OutgoingBody>>> for ConnectionError {
    fn from(mut error: TrySendError<Request<OutgoingBody>>) -> Self {
        match error.take_message() {
            Some(request) => Self::HandedBack(Box::new(request)),
            None => Self::Lost(error.into_error()),
        }
    }
}

/// An HTTP/1.1 connection: one request at a time.
#[derive(Debug)]
pub(crate) struct Http1Connection {
    sender: http1::SendRequest<OutgoingBody>,
    driver: Driver,
    deadline: Deadline,
    /// Held while in use.
    slot: Option<ConnectionSlot>,
    /// The runtime that it was opened in.
    runtime: runtime::Id,
}

/// Polls the connection's I/O.
#[derive(Debug)]
struct Driver {
    connection: Option<http1::Connection<TokioIo<UpstreamStream>, OutgoingBody>>,
    has_ended: bool,
}

impl Driver {
    /// Polls the I/O. An error is reported by the request in flight.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = self.connection.as_mut().filter(|_| !self.has_ended) {
            self.has_ended = Pin::new(connection).poll(cx).is_ready();
        }
    }
}

impl Http1Connection {
    pub(super) fn new(
        sender: http1::SendRequest<OutgoingBody>,
        connection: http1::Connection<TokioIo<UpstreamStream>, OutgoingBody>,
    ) -> Self {
        let driver = Driver { connection: Some(connection), has_ended: false };
        Self { sender, driver, deadline: Deadline::default(), slot: None, runtime: Handle::current().id() }
    }

    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        self.driver.drive(cx);
    }

    /// Counts it as in use, until it is closed or [released](Self::release_slot).
    pub(super) fn hold_slot(&mut self, slot: Option<ConnectionSlot>) {
        self.slot = slot;
    }

    /// The runtime that receives its I/O events.
    pub(super) fn runtime(&self) -> runtime::Id {
        self.runtime
    }

    pub(super) fn release_slot(&mut self) -> Option<ConnectionSlot> {
        self.slot.take()
    }

    /// Whether it can take a request, as far as is known locally. Polled with a no-op waker: it wakes no task until it is
    /// driven again, by the task that sends the next request.
    pub(super) fn is_open(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.is_ready()
    }

    /// Whether the last exchange is over in both directions.
    pub(crate) fn is_ready(&self) -> bool {
        !self.driver.has_ended && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(
        &mut self,
        request: Box<Request<OutgoingBody>>,
        response_timeout: Duration,
    ) -> Result<Response<Incoming>, ConnectionError> {
        let mut upload = UploadProgress::of(&request);
        self.deadline.set(response_timeout);
        let mut response = pin!(self.sender.try_send_request(*request));
        let (driver, deadline) = (&mut self.driver, &mut self.deadline);
        poll_fn(|cx| {
            driver.drive(cx);
            let mut polled = response.as_mut().poll(cx);
            if polled.is_pending() && driver.has_ended {
                // Dropping the connection hands back a request that it did not take.
                driver.connection = None;
                polled = response.as_mut().poll(cx);
            }
            if let Poll::Ready(response) = polled {
                return Poll::Ready(response.map_err(ConnectionError::from));
            }
            while deadline.poll_passed(cx).is_ready() {
                if !upload.has_advanced() {
                    return Poll::Ready(Err(ConnectionError::TimedOut));
                }
                deadline.set(response_timeout);
            }
            Poll::Pending
        })
        .await
    }

    /// The socket of an upgraded connection, the bytes that were read ahead, and its slot.
    pub(crate) async fn into_socket(
        mut self: Box<Self>,
    ) -> Option<(UpstreamStream, Bytes, Option<ConnectionSlot>)> {
        poll_fn(|cx| {
            self.drive(cx);
            if self.driver.has_ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let parts = self.driver.connection.take()?.into_parts();
        Some((parts.io.into_inner(), parts.read_buf, self.slot.take()))
    }

    /// Limits how long the upstream may pause from now on.
    pub(crate) fn set_deadline(&mut self, timeout: Duration) {
        self.deadline.set(timeout);
    }

    /// Ready when the upstream paused for too long.
    pub(crate) fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.deadline.poll_passed(cx)
    }
}

/// An HTTP/2 connection: many concurrent requests.
#[derive(Clone, Debug)]
pub(super) struct Http2Connection {
    sender: http2::SendRequest<OutgoingBody>,
}

impl Http2Connection {
    pub(super) fn new(sender: http2::SendRequest<OutgoingBody>) -> Self {
        Self { sender }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    pub(super) async fn send(
        &mut self,
        request: Box<Request<OutgoingBody>>,
        response_timeout: Duration,
    ) -> Result<Response<Incoming>, ConnectionError> {
        let mut upload = UploadProgress::of(&request);
        let mut response = pin!(self.sender.try_send_request(*request));
        loop {
            match timeout(response_timeout, response.as_mut()).await {
                Ok(response) => return response.map_err(ConnectionError::from),
                Err(_) if upload.has_advanced() => {}
                Err(_) => return Err(ConnectionError::TimedOut),
            }
        }
    }
}

/// Tells whether a request's body is still being sent.
struct UploadProgress {
    frames: Option<FrameCounter>,
    seen: usize,
}

impl UploadProgress {
    fn of(request: &Request<OutgoingBody>) -> Self {
        Self { frames: request.body().frames(), seen: 0 }
    }

    /// Whether more was sent since the last call.
    fn has_advanced(&mut self) -> bool {
        let sent = self.frames.as_ref().map_or(0, FrameCounter::count);
        std::mem::replace(&mut self.seen, sent) != sent
    }
}
