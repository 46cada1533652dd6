//! An upgraded connection: bytes in both directions until one side closes or both are silent.

use std::fmt;
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

use crate::upstream::Http1Connection;

/// An accepted upgrade, in the extensions of the 101 response.
///
/// The connection that sends the response [runs](Self::run) it. hyper hands a client's connection over after other
/// responses as well, so it must not be awaited before.
#[derive(Clone)]
pub(crate) struct ProtocolSwitch(Arc<Mutex<Option<Sides>>>);

struct Sides {
    client: OnUpgrade,
    upstream: Box<Http1Connection>,
    idle: Duration,
}

impl fmt::Debug for ProtocolSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProtocolSwitch")
    }
}

impl ProtocolSwitch {
    pub(super) fn new(client: OnUpgrade, upstream: Box<Http1Connection>, idle: Duration) -> Self {
        Self(Arc::new(Mutex::new(Some(Sides { client, upstream, idle }))))
    }

    /// Connects both sides once the client has the response.
    pub(crate) async fn run(self) {
        let sides = self.0.lock().take();
        if let Some(Sides { client, upstream, idle }) = sides {
            splice(client, upstream, idle).await;
        }
    }
}

async fn splice(client: OnUpgrade, upstream: Box<Http1Connection>, idle: Duration) {
    let Some((mut upstream, first_bytes, _slot)) = upstream.into_socket().await else { return };
    let client = match client.await {
        Ok(client) => client,
        Err(error) => return tracing::debug!(%error, "an upgrade failed"),
    };
    let transfers = Arc::new(AtomicUsize::new(0));
    let mut client = CountedIo { io: TokioIo::new(client), transfers: transfers.clone() };
    if client.write_all(&first_bytes).await.is_err() {
        return;
    }
    tokio::select! {
        ended = copy_bidirectional(&mut client, &mut upstream) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "an upgraded connection broke off");
            }
        }
        () = silence(&transfers, idle) => tracing::debug!("an upgraded connection was idle for too long"),
    }
}

/// Resolves when nothing was transferred for this long.
async fn silence(transfers: &AtomicUsize, idle: Duration) {
    let mut ticks = interval(idle.max(Duration::from_millis(1)));
    ticks.tick().await;
    let mut seen = transfers.load(Ordering::Relaxed);
    loop {
        ticks.tick().await;
        let now = transfers.load(Ordering::Relaxed);
        if now == seen {
            return;
        }
        seen = now;
    }
}

/// The client's side; counts transfers in both directions.
struct CountedIo {
    io: TokioIo<Upgraded>,
    transfers: Arc<AtomicUsize>,
}

impl CountedIo {
    fn count<T>(&self, transfer: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if transfer.is_ready() {
            self.transfers.fetch_add(1, Ordering::Relaxed);
        }
        transfer
    }
}

impl AsyncRead for CountedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        self.count(read)
    }
}

impl AsyncWrite for CountedIo {
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
