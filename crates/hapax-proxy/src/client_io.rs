//! [`Guarded`]: a client's connection with an end to patience, whose heads are looked at before they are read.
//!
//! It does not know what is asked or answered. What it must know of requests, it is told by [`Progress`].

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

use super::deadline::Deadline;
use super::frames::Frames;
use super::head::{Fault, Inspected, Inspector, SPOILED};
use super::untaken::Untaken;

/// How far the requests of a connection are.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Requests whose answer has not left.
    open: AtomicUsize,
    /// Requests that began.
    begun: AtomicUsize,
    /// Requests that were answered. On HTTP/1 they are answered in the order in which their heads came.
    answered: AtomicUsize,
    /// Whether the last answer changed the protocol.
    is_switched: AtomicBool,
    /// Whether bytes of another protocol came before it was agreed on.
    early: AtomicBool,
    /// Told when an answer was given up because it was not taken.
    given_up: Notify,
    /// Cancelled once the listener is to end.
    stop: CancellationToken,
    /// What the bytes of its answers count in.
    untaken: OnceLock<Arc<Untaken>>,
    /// Told when the connection is to end at once.
    cut_off: Notify,
}

/// One request that is being answered, until its answer has left.
#[derive(Debug)]
pub(super) struct Open(Arc<Progress>);

impl Progress {
    /// Of a connection that is to end with `stop`.
    pub(super) fn until(stop: CancellationToken) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Cancelled once the listener is to end.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(super) fn begin(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }

    /// What was answered. A connection changes its protocol on 101 and on nothing else.
    pub(super) fn answered(&self, status: StatusCode) {
        self.is_switched.store(status == StatusCode::SWITCHING_PROTOCOLS, Ordering::Relaxed);
        self.answered.fetch_add(1, Ordering::Release);
    }

    /// Whether bytes of another protocol came too early for it.
    pub(super) fn is_early(&self) -> bool {
        self.early.load(Ordering::Relaxed)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    pub(super) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// The bytes of its answers count there from now on.
    pub(super) fn count_in(&self, untaken: &Arc<Untaken>) {
        self.untaken.get_or_init(|| Arc::clone(untaken));
    }

    pub(super) fn untaken(&self) -> Option<&Arc<Untaken>> {
        self.untaken.get()
    }

    /// Ends the connection at once, whatever is open on it.
    pub(super) fn cut_off(&self) {
        self.cut_off.notify_one();
    }

    /// Serves the connection, but no longer than until it is cut off.
    pub(super) async fn unless_cut_off(&self, served: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = served => {}
            () = self.cut_off.notified() => tracing::debug!("cut off a connection"),
        }
    }

    /// Resolves once the client left an answer where it is.
    pub(super) async fn given_up(&self) {
        self.given_up.notified().await;
    }
}

impl Open {
    /// The connection that it is on.
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.0
    }

    /// The client does not take the answer.
    pub(super) fn give_up(&self) {
        self.0.given_up.notify_one();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a client may take for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) head: Duration,
    pub(super) keep_alive: Duration,
    pub(super) write_idle: Duration,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    /// Nothing that has a deadline here.
    Free,
    Request,
    /// The end of a head, and how many whole ones came before it.
    Head(usize),
}

/// What is known of what was read.
#[derive(Debug)]
pub(super) enum Watched {
    Http1(Inspector),
    /// Its frames leave no doubt, and only the time of its heads is watched.
    Http2(Frames),
}

impl Watched {
    fn is_in_head(&self) -> bool {
        match self {
            Self::Http1(inspector) => inspector.is_in_head(),
            Self::Http2(frames) => frames.is_in_head(),
        }
    }

    /// How many heads are whole.
    fn heads(&self) -> usize {
        match self {
            Self::Http1(inspector) => inspector.heads(),
            Self::Http2(frames) => frames.heads(),
        }
    }
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    io: S,
    /// What was read to find out which version of HTTP is spoken.
    sniffed: Bytes,
    /// What is read in place of what was refused, and the last that is read at all.
    spoiled: Option<Bytes>,
    watched: Watched,
    progress: Arc<Progress>,
    times: Times,
    wait: Wait,
    reading: Deadline,
    writing: Deadline,
    /// Whether the client sends no more, and that was not told yet.
    is_ended: bool,
    /// Whether everything that was written has left.
    is_flushed: bool,
}

impl<S> Guarded<S> {
    pub(super) fn new(
        io: S,
        sniffed: Bytes,
        watched: Watched,
        progress: Arc<Progress>,
        times: Times,
    ) -> Self {
        Self {
            io,
            sniffed,
            spoiled: None,
            watched,
            progress,
            times,
            wait: Wait::Free,
            reading: Deadline::default(),
            writing: Deadline::default(),
            is_ended: false,
            is_flushed: true,
        }
    }

    /// Tells the inspector what became of a wish for another protocol.
    fn follow_upgrade(&mut self) {
        let Watched::Http1(inspector) = &mut self.watched else { return };
        // Nothing is read behind a wish, so it is the last head, and its answer makes up the number.
        if !inspector.is_asked() || self.progress.answered.load(Ordering::Acquire) < inspector.heads() {
            return;
        }
        if self.progress.is_switched.load(Ordering::Relaxed) {
            inspector.accepted();
        } else {
            inspector.declined();
        }
    }

    /// Whether the last request is whole, and its answer has not left. Of HTTP/2, hyper knows that itself.
    fn owes_answer(&self) -> bool {
        let Watched::Http1(inspector) = &self.watched else { return false };
        let is_answered = self.progress.answered.load(Ordering::Acquire) >= inspector.heads();
        inspector.is_between() && !(is_answered && self.progress.is_idle() && self.is_flushed)
    }

    /// Looks at what was read; the end of what may be seen of it.
    fn inspect(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let inspector = match &mut self.watched {
            Watched::Http1(inspector) => inspector,
            Watched::Http2(frames) => {
                frames.follow(bytes);
                return Ok(bytes.len());
            }
        };
        match inspector.inspect(bytes) {
            Inspected::Fine => Ok(bytes.len()),
            Inspected::Refused(end, fault) => {
                tracing::debug!(?fault, "refused a request head");
                self.progress.early.fetch_or(fault == Fault::EarlyUpgrade, Ordering::Relaxed);
                self.spoiled = Some(Bytes::from_static(SPOILED));
                Ok(end)
            }
            Inspected::Broken => {
                tracing::debug!("refused a chunked body");
                Err(io::Error::new(io::ErrorKind::InvalidData, "the framing of the body is wrong"))
            }
        }
    }

    /// Ends the wait that was for the bytes that came, and its deadline. A head has one deadline for all of it.
    fn end_wait(&mut self) {
        let is_same_head = self.watched.is_in_head() && self.wait == Wait::Head(self.watched.heads());
        if !is_same_head {
            self.wait = Wait::Free;
            self.reading.clear();
        }
    }

    /// Sets the deadline for what is waited for now, if it was not set for that before.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_between = matches!(&self.watched, Watched::Http1(inspector) if inspector.is_between());
        let (wait, span) = if self.watched.is_in_head() {
            (Wait::Head(self.watched.heads()), self.times.head)
        } else if is_between && self.progress.is_idle() {
            (Wait::Request, self.times.keep_alive)
        } else {
            (Wait::Free, Duration::MAX)
        };
        if self.wait != wait {
            self.wait = wait;
            self.reading.within(span);
        }
        self.reading.poll_passed(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(spoiled) = &mut this.spoiled {
            hand_over(spoiled, buf);
            return Poll::Ready(Ok(()));
        }
        this.follow_upgrade();
        let before = buf.filled().len();
        if this.sniffed.has_remaining() {
            hand_over(&mut this.sniffed, buf);
        } else {
            let read = Pin::new(&mut this.io).poll_read(cx, buf)?;
            // hyper takes the end of what a client sends for the end of the client, and would drop its request.
            this.is_ended = read.is_ready() && buf.filled().len() == before && this.owes_answer();
            if read.is_pending() || this.is_ended {
                return this.poll_patience(cx);
            }
        }
        if buf.filled().len() > before {
            let end = this.inspect(&buf.filled()[before..])?;
            this.end_wait();
            buf.set_filled(before + end);
            if let Some(spoiled) = &mut this.spoiled {
                hand_over(spoiled, buf);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn hand_over(bytes: &mut Bytes, buf: &mut ReadBuf<'_>) {
    let taken = bytes.split_to(bytes.len().min(buf.remaining()));
    buf.put_slice(&taken);
}

impl<S: AsyncWrite + Unpin> Guarded<S> {
    /// Gives up on a client that takes nothing.
    fn poll_taking<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing.clear();
            return written;
        }
        if !self.writing.is_set() {
            let span = self.times.write_idle;
            self.writing.within(span);
        }
        self.writing.poll_passed(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_flushed = false;
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.poll_taking(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.is_flushed = false;
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bytes);
        self.poll_taking(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.is_flushed = true;
        if self.is_ended && !self.owes_answer() {
            // Only now may hyper know of the end, and it does not ask again by itself.
            self.is_ended = false;
            cx.waker().wake_by_ref();
        }
        // Nobody reads again before the next request comes, so the time for it begins when the last answer has left.
        if self.progress.is_idle()
            && let Poll::Ready(late) = self.poll_patience(cx)
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
