//! A connection that speaks another protocol from now on: bytes both ways, until one side ends or both are silent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional};
use tokio::time::interval;

use crate::proxy::upstream::Http1;

/// An agreed change of protocol, in the extensions of the answer that agrees to it.
///
/// It begins when whoever sends that answer [runs](Self::run) it. hyper gives a client's connection away also after
/// another answer, so it must not be waited for before.
#[derive(Clone)]
pub(in crate::proxy) struct Switch(Arc<Mutex<Option<Sides>>>);

struct Sides {
    client: OnUpgrade,
    upstream: Box<Http1>,
    idle: Duration,
}

impl Switch {
    pub(super) fn new(client: OnUpgrade, upstream: Box<Http1>, idle: Duration) -> Self {
        Self(Arc::new(Mutex::new(Some(Sides { client, upstream, idle }))))
    }

    /// Joins both sides once the client was told.
    pub(in crate::proxy) async fn run(self) {
        let sides = self.0.lock().take();
        if let Some(Sides { client, upstream, idle }) = sides {
            join(client, upstream, idle).await;
        }
    }
}

async fn join(client: OnUpgrade, upstream: Box<Http1>, idle: Duration) {
    let Some((mut upstream, first, _place)) = upstream.into_socket().await else { return };
    let client = match client.await {
        Ok(client) => client,
        Err(error) => return tracing::debug!(%error, "a change of protocol came to nothing"),
    };
    let moves = Arc::new(AtomicUsize::new(0));
    let mut client = Watched { io: TokioIo::new(client), moves: moves.clone() };
    if client.write_all(&first).await.is_err() {
        return;
    }
    tokio::select! {
        ended = copy_bidirectional(&mut client, &mut upstream) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection of another protocol broke off");
            }
        }
        () = silence(&moves, idle) => tracing::debug!("a connection of another protocol was silent for too long"),
    }
}

/// Resolves when nothing has moved for this long.
async fn silence(moves: &AtomicUsize, idle: Duration) {
    let mut ticks = interval(idle.max(Duration::from_millis(1)));
    ticks.tick().await;
    let mut seen = moves.load(Ordering::Relaxed);
    loop {
        ticks.tick().await;
        let now = moves.load(Ordering::Relaxed);
        if now == seen {
            return;
        }
        seen = now;
    }
}

/// One side, which counts what passes either way.
struct Watched {
    io: TokioIo<Upgraded>,
    moves: Arc<AtomicUsize>,
}

impl Watched {
    fn count<T>(&self, moved: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            self.moves.fetch_add(1, Ordering::Relaxed);
        }
        moved
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        self.count(read)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.count(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
