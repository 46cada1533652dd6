//! [`ClientIo`]: a client's connection with timeouts, whose request heads are inspected before they are read.
//!
//! It does not know requests and responses. What it needs of them is in [`ConnectionState`].

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;
use crate::head::{FramingFault, Http1Inspector, INVALID_BYTES, Inspection};
use crate::http2_frames::FrameTracker;
use crate::response_budget::ResponseBudget;

/// The state of a connection that its socket and its requests share.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    /// Requests whose response has not left.
    open: AtomicUsize,
    /// Requests that began.
    begun: AtomicUsize,
    /// Requests that have a response. On HTTP/1 responses come in the order of the heads.
    responses: AtomicUsize,
    /// Whether the last response was a 101.
    is_upgraded: AtomicBool,
    /// Whether bytes of another protocol came before the upgrade was accepted.
    has_early_bytes: AtomicBool,
    /// Notified when a response was abandoned because the client did not read it.
    abandoned: Notify,
    /// Cancelled when the listener shuts down.
    shutdown: CancellationToken,
    /// Counts the bytes of its responses.
    budget: OnceLock<Arc<ResponseBudget>>,
    /// Notified when the connection is to be closed immediately.
    abort: Notify,
}

/// A request in flight, until its response has left.
#[derive(Debug)]
pub(crate) struct OpenRequest(Arc<ConnectionState>);

impl ConnectionState {
    pub(crate) fn with_shutdown(shutdown: CancellationToken) -> Self {
        Self { shutdown, ..Self::default() }
    }

    /// Cancelled when the listener shuts down.
    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    pub(crate) fn begin_request(self: &Arc<Self>) -> OpenRequest {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        OpenRequest(self.clone())
    }

    /// Records the status of a response. Only 101 upgrades the connection.
    pub(crate) fn record_response(&self, status: StatusCode) {
        self.is_upgraded.store(status == StatusCode::SWITCHING_PROTOCOLS, Ordering::Relaxed);
        self.responses.fetch_add(1, Ordering::Release);
    }

    /// Whether bytes of another protocol came before the upgrade was accepted.
    pub(crate) fn has_early_bytes(&self) -> bool {
        self.has_early_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn requests_begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Counts the bytes of its responses there from now on.
    pub(crate) fn set_budget(&self, budget: &Arc<ResponseBudget>) {
        self.budget.get_or_init(|| Arc::clone(budget));
    }

    pub(crate) fn budget(&self) -> Option<&Arc<ResponseBudget>> {
        self.budget.get()
    }

    /// Closes the connection immediately, with all its requests.
    pub(crate) fn abort(&self) {
        self.abort.notify_one();
    }

    /// Runs the connection until it ends or is aborted.
    pub(crate) async fn run_until_aborted(&self, connection: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = connection => {}
            () = self.abort.notified() => tracing::debug!("aborted a connection"),
        }
    }

    /// Resolves once the client did not read a response in time.
    pub(crate) async fn response_abandoned(&self) {
        self.abandoned.notified().await;
    }
}

impl OpenRequest {
    pub(crate) fn connection(&self) -> &Arc<ConnectionState> {
        &self.0
    }

    /// The client does not read the response.
    pub(crate) fn abandon_response(&self) {
        self.0.abandoned.notify_one();
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The timeouts of a client's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) head: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) write_idle: Duration,
}

/// What the read deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadWait {
    /// Nothing that has a deadline here.
    Unlimited,
    NextRequest,
    /// The end of a head, and the number of complete heads before it.
    Head(usize),
}

/// Follows what is read, by the version of HTTP.
#[derive(Debug)]
pub(crate) enum RequestTracker {
    Http1(Http1Inspector),
    /// Frames are unambiguous; only the time of header blocks is limited.
    Http2(FrameTracker),
}

impl RequestTracker {
    fn is_in_head(&self) -> bool {
        match self {
            Self::Http1(inspector) => inspector.is_in_head(),
            Self::Http2(frames) => frames.is_in_head(),
        }
    }

    /// Number of complete heads.
    fn heads(&self) -> usize {
        match self {
            Self::Http1(inspector) => inspector.heads(),
            Self::Http2(frames) => frames.heads(),
        }
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct ClientIo<S> {
    io: S,
    /// Bytes that were read to detect the version of HTTP.
    prefix: Bytes,
    /// Read in place of refused bytes, and the last that is read at all.
    replacement: Option<Bytes>,
    tracker: RequestTracker,
    state: Arc<ConnectionState>,
    timeouts: Timeouts,
    wait: ReadWait,
    read_deadline: Deadline,
    write_deadline: Deadline,
    /// Whether the client's end of stream is withheld from hyper.
    holds_back_eof: bool,
    is_flushed: bool,
}

impl<S> ClientIo<S> {
    pub(crate) fn new(
        io: S,
        prefix: Bytes,
        tracker: RequestTracker,
        state: Arc<ConnectionState>,
        timeouts: Timeouts,
    ) -> Self {
        Self {
            io,
            prefix,
            replacement: None,
            tracker,
            state,
            timeouts,
            wait: ReadWait::Unlimited,
            read_deadline: Deadline::default(),
            write_deadline: Deadline::default(),
            holds_back_eof: false,
            is_flushed: true,
        }
    }

    /// Passes the response to an upgrade request on to the inspector.
    fn follow_upgrade(&mut self) {
        let RequestTracker::Http1(inspector) = &mut self.tracker else { return };
        // Nothing is read after an upgrade request, so it is the last head and has a response when all heads have.
        if !inspector.awaits_upgrade() || self.state.responses.load(Ordering::Acquire) < inspector.heads() {
            return;
        }
        if self.state.is_upgraded.load(Ordering::Relaxed) {
            inspector.upgrade_accepted();
        } else {
            inspector.upgrade_declined();
        }
    }

    /// Whether the last request is complete and its response has not left. For HTTP/2, hyper keeps track of that.
    fn owes_response(&self) -> bool {
        let RequestTracker::Http1(inspector) = &self.tracker else { return false };
        let has_response = self.state.responses.load(Ordering::Acquire) >= inspector.heads();
        inspector.is_between_requests() && !(has_response && self.state.is_idle() && self.is_flushed)
    }

    /// Inspects bytes that were read; returns how many of them may be passed on.
    fn inspect(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let inspector = match &mut self.tracker {
            RequestTracker::Http1(inspector) => inspector,
            RequestTracker::Http2(frames) => {
                frames.follow(bytes);
                return Ok(bytes.len());
            }
        };
        match inspector.inspect(bytes) {
            Inspection::Accepted => Ok(bytes.len()),
            Inspection::Refused(end, fault) => {
                tracing::debug!(?fault, "refused a request head");
                self.state.has_early_bytes.fetch_or(fault == FramingFault::EarlyUpgrade, Ordering::Relaxed);
                self.replacement = Some(Bytes::from_static(INVALID_BYTES));
                Ok(end)
            }
            Inspection::InvalidBody => {
                tracing::debug!("refused a chunked body");
                Err(io::Error::new(io::ErrorKind::InvalidData, "invalid chunked framing"))
            }
        }
    }

    /// Ends the wait for the bytes that came, and its deadline. A head has one deadline for all of it.
    fn end_wait(&mut self) {
        let is_same_head = self.tracker.is_in_head() && self.wait == ReadWait::Head(self.tracker.heads());
        if !is_same_head {
            self.wait = ReadWait::Unlimited;
            self.read_deadline.clear();
        }
    }

    /// Sets the deadline for what is awaited now, unless it is set for that already. Ready when it has passed.
    fn poll_read_timeout(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_between_requests =
            matches!(&self.tracker, RequestTracker::Http1(inspector) if inspector.is_between_requests());
        let (wait, timeout) = if self.tracker.is_in_head() {
            (ReadWait::Head(self.tracker.heads()), self.timeouts.head)
        } else if is_between_requests && self.state.is_idle() {
            (ReadWait::NextRequest, self.timeouts.keep_alive)
        } else {
            (ReadWait::Unlimited, Duration::MAX)
        };
        if self.wait != wait {
            self.wait = wait;
            self.read_deadline.set(timeout);
        }
        self.read_deadline.poll_passed(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(replacement) = &mut this.replacement {
            copy_to(replacement, buf);
            return Poll::Ready(Ok(()));
        }
        this.follow_upgrade();
        let before = buf.filled().len();
        if this.prefix.has_remaining() {
            copy_to(&mut this.prefix, buf);
        } else {
            let read = Pin::new(&mut this.io).poll_read(cx, buf)?;
            // hyper treats a half-closed connection as closed and would cancel the request.
            this.holds_back_eof = read.is_ready() && buf.filled().len() == before && this.owes_response();
            if read.is_pending() || this.holds_back_eof {
                return this.poll_read_timeout(cx);
            }
        }
        if buf.filled().len() > before {
            let end = this.inspect(&buf.filled()[before..])?;
            this.end_wait();
            buf.set_filled(before + end);
            if let Some(replacement) = &mut this.replacement {
                copy_to(replacement, buf);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn copy_to(bytes: &mut Bytes, buf: &mut ReadBuf<'_>) {
    let taken = bytes.split_to(bytes.len().min(buf.remaining()));
    buf.put_slice(&taken);
}

impl<S: AsyncWrite + Unpin> ClientIo<S> {
    /// Fails when the client reads nothing for too long.
    fn poll_write_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_deadline.clear();
            return written;
        }
        if !self.write_deadline.is_set() {
            let timeout = self.timeouts.write_idle;
            self.write_deadline.set(timeout);
        }
        self.write_deadline.poll_passed(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_flushed = false;
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.poll_write_timeout(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.is_flushed = false;
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bytes);
        self.poll_write_timeout(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.is_flushed = true;
        if self.holds_back_eof && !self.owes_response() {
            // hyper may see the end of the stream now, and does not poll again without a wake-up.
            self.holds_back_eof = false;
            cx.waker().wake_by_ref();
        }
        // hyper does not read before the next request, so the keep-alive deadline starts when the last response has left.
        if self.state.is_idle()
            && let Poll::Ready(late) = self.poll_read_timeout(cx)
        {
            return Poll::Ready(late);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
