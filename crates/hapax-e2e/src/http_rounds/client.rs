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
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) is_replay: bool,
    /// The head's fields in their order; names are in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Told {
    /// The first field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

/// One order, with its key.
pub(crate) fn order(path: &str, key: &str) -> Vec<u8> {
    let body = format!("order {key}");
    format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nIdempotency-Key: \"{key}\"\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl Client {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("nobody listens")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::new() })
    }

    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await.context("the connection takes nothing")
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn half_close(&mut self) -> Result<()> {
        self.stream.shutdown().await.context("the connection is gone")
    }

    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Told> {
        self.send(request).await?;
        self.told().await
    }

    /// Reads one answer. All of them have a length here.
    pub(crate) async fn told(&mut self) -> Result<Told> {
        let head = self.head().await?;
        let text = String::from_utf8_lossy(&self.read[..head]);
        let mut lines = text.lines();
        let status = lines.next().and_then(|first| first.split(' ').nth(1)).context("no status")?.parse()?;
        let fields = lines.filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let mut told = Told { status, is_replay: false, fields, body: Vec::new() };
        told.is_replay = told.field("x-idempotent-replayed") == Some("true");
        let length: usize = told.field("content-length").context("an answer without a length")?.parse()?;
        while self.read.len() < head + length {
            self.more().await?;
        }
        told.body = self.read[head..head + length].to_vec();
        self.read.drain(..head + length);
        Ok(told)
    }

    /// Waits for the head of an answer; where it ends.
    pub(crate) async fn head(&mut self) -> Result<usize> {
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
