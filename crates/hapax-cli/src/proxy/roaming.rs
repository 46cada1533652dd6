//! [`Roaming`]: a client's socket, which goes along when its connection leaves for another lane.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::socket::Progress;

/// A socket that is watched by the runtime that its connection is on.
#[derive(Debug)]
pub(super) struct Roaming {
    /// None if the runtime that it came to could not watch it.
    stream: Option<TcpStream>,
    progress: Arc<Progress>,
    /// How often the connection had changed lanes when the socket came here.
    moves: usize,
}

impl Roaming {
    /// Watched by the runtime that this is called in.
    pub(super) fn new(stream: std::net::TcpStream, progress: Arc<Progress>) -> io::Result<Self> {
        // Answers are written as a whole; waiting for more to send only delays them.
        let _unsupported = stream.set_nodelay(true);
        let moves = progress.moves();
        Ok(Self { stream: Some(TcpStream::from_std(stream)?), progress, moves })
    }

    /// The socket, watched from here.
    fn here(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let moves = self.progress.moves();
        if self.moves != moves {
            self.moves = moves;
            let stream = self.stream.take().map(TcpStream::into_std).transpose()?;
            self.stream = stream.map(TcpStream::from_std).transpose()?;
        }
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for Roaming {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.here()?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Roaming {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.here()?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.here()?.poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(TcpStream::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_shutdown(cx)
    }
}
