//! [`HttpConnection`]: an HTTP/1.1 client connection with one exchange at a time.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Far longer than any read takes in a run that works.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A response as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) is_replay: bool,
    /// The header fields in their order; names are in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpReply {
    /// The first field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A request with a body. `fields` are its other header lines, each with its line end.
pub(crate) fn request(method: &str, path: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A POST with an idempotency key.
pub(crate) fn keyed_post(path: &str, key: &str, body: &str) -> Vec<u8> {
    request("POST", path, &format!("Host: test\r\nIdempotency-Key: \"{key}\"\r\n"), body)
}

pub(crate) struct HttpConnection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl HttpConnection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::new() })
    }

    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await.context("cannot write the request")
    }

    /// Closes the sending side.
    pub(crate) async fn half_close(&mut self) -> Result<()> {
        self.stream.shutdown().await.context("cannot close the sending side")
    }

    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<HttpReply> {
        self.send(request).await?;
        self.reply().await
    }

    /// Reads one response. All of them have a length here.
    pub(crate) async fn reply(&mut self) -> Result<HttpReply> {
        let head = self.head().await?;
        let text = String::from_utf8_lossy(&self.read[..head]);
        let mut lines = text.lines();
        let status = lines.next().and_then(|first| first.split(' ').nth(1)).context("no status")?.parse()?;
        let fields = lines.filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let mut reply = HttpReply { status, is_replay: false, fields, body: Vec::new() };
        reply.is_replay = reply.field("x-idempotent-replayed") == Some("true");
        let length: usize = reply.field("content-length").context("a response without a length")?.parse()?;
        while self.read.len() < head + length {
            self.read_more().await?;
        }
        reply.body = self.read[head..head + length].to_vec();
        self.read.drain(..head + length);
        Ok(reply)
    }

    /// Reads until the head of a response is complete. Returns its length.
    pub(crate) async fn head(&mut self) -> Result<usize> {
        loop {
            if let Some(end) = self.read.windows(4).position(|end| end == b"\r\n\r\n") {
                return Ok(end + 4);
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> Result<()> {
        let read = self.stream.read_buf(&mut self.read);
        let count = tokio::time::timeout(READ_TIMEOUT, read).await.context("no response in time")??;
        ensure!(count > 0, "the connection ended before its response");
        Ok(())
    }
}
