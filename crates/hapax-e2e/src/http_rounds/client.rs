//! A connection that says one thing and hears one answer at a time.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Past it, something hangs.
const HANGS: Duration = Duration::from_secs(60);

/// What a client was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Told {
    pub(super) status: u16,
    pub(super) is_replay: bool,
    pub(super) body: Vec<u8>,
}

pub(super) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

/// One order, with its key.
pub(super) fn order(path: &str, key: &str) -> Vec<u8> {
    let body = format!("order {key}");
    format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nIdempotency-Key: \"{key}\"\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl Client {
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("nobody listens")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::new() })
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await.context("the connection takes nothing")
    }

    /// Says that nothing more will be sent.
    pub(super) async fn half_close(&mut self) -> Result<()> {
        self.stream.shutdown().await.context("the connection is gone")
    }

    pub(super) async fn ask(&mut self, request: &[u8]) -> Result<Told> {
        self.send(request).await?;
        self.told().await
    }

    /// Reads one answer. All of them have a length here.
    pub(super) async fn told(&mut self) -> Result<Told> {
        let head = self.head().await?;
        let text = String::from_utf8_lossy(&self.read[..head]).to_ascii_lowercase();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("an answer without a length")?.parse()?;
        let is_replay = text.contains("\r\nx-idempotent-replayed: true\r\n");
        while self.read.len() < head + length {
            self.more().await?;
        }
        let body = self.read[head..head + length].to_vec();
        self.read.drain(..head + length);
        Ok(Told { status, is_replay, body })
    }

    /// Waits for the head of an answer; where it ends.
    pub(super) async fn head(&mut self) -> Result<usize> {
        loop {
            if let Some(end) = self.read.windows(4).position(|end| end == b"\r\n\r\n") {
                return Ok(end + 4);
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<()> {
        let read = self.stream.read_buf(&mut self.read);
        let count = tokio::time::timeout(HANGS, read).await.context("no answer comes")??;
        ensure!(count > 0, "the connection ended before its answer");
        Ok(())
    }
}
