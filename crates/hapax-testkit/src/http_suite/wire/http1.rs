//! A hand-written HTTP/1 client, which can also send what no client library would.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::future::{Either, select};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::{ExchangeError, WireResponse, lines};
use crate::http_suite::case::Send;

/// More header fields than any answer of the cases has.
const FIELDS_MAX: usize = 100;
/// Longer than any response of the cases.
const ANSWER_BYTES_MAX: usize = 128 << 20;

pub(super) async fn exchange(
    leave: impl Future<Output = ()>,
    addr: SocketAddr,
    send: &Send,
) -> Result<WireResponse, ExchangeError> {
    let stream = TcpStream::connect(addr).await.map_err(|error| ExchangeError::because("connect", error))?;
    let (from, mut to) = stream.into_split();
    let mut reader = Reader { from, buffer: BytesMut::new(), is_head: send.method == "HEAD" };
    let request = request(addr, send);
    let talked = match select(pin!(leave), pin!(talk(&mut reader, &mut to, send, request))).await {
        Either::Left(((), _)) => None,
        Either::Right((answer, _)) => Some(answer),
    };
    if let Some(answer) = talked {
        return answer;
    }
    write(&mut to, &[], false).await;
    while reader.more().await.is_ok_and(|read| read > 0) {}
    Err(ExchangeError::hung_up())
}

async fn talk(
    reader: &mut Reader,
    to: &mut OwnedWriteHalf,
    send: &Send,
    (head, body): (Vec<u8>, Vec<u8>),
) -> Result<WireResponse, ExchangeError> {
    let keep_open = send.cut.is_none();
    if send.expect_continue {
        write(to, &head, true).await;
        let first = reader.head().await?;
        if first.status != 100 {
            return reader.rest(first).await;
        }
        write(to, &body, keep_open).await;
        return Ok(WireResponse { continued: true, ..reader.answer().await? });
    }
    let bytes = [head, body].concat();
    let writing = pin!(async {
        write(to, &bytes, keep_open).await;
        // A response may come before the request is written, never the other way round.
        pending::<()>().await;
    });
    match select(writing, pin!(reader.answer())).await {
        Either::Right((answer, _)) => answer,
        Either::Left(((), _)) => Err(ExchangeError("the writer ended before the answer".into())),
    }
}

/// Errors are ignored here: reading the response reports them.
async fn write(to: &mut OwnedWriteHalf, bytes: &[u8], keep_open: bool) {
    let _ = to.write_all(bytes).await;
    if !keep_open {
        let _ = to.shutdown().await;
    }
}

/// The request's head and its body as they go over the wire.
fn request(addr: SocketAddr, send: &Send) -> (Vec<u8>, Vec<u8>) {
    if let Some(raw) = &send.raw {
        return (raw.clone().into_bytes(), Vec::new());
    }
    let version = send.version.as_deref().unwrap_or("1.1");
    let host = send.host.clone().unwrap_or_else(|| addr.to_string());
    let mut head = format!("{} {} HTTP/{version}\r\nHost: {host}\r\n", send.method, send.path);
    for (name, value) in send.lines() {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if send.expect_continue {
        head.push_str("Expect: 100-continue\r\n");
    }
    let content = send.content();
    let body = if send.chunked.is_some() || !send.trailers.is_empty() {
        head.push_str("Transfer-Encoding: chunked\r\n");
        chunks(&content.unwrap_or_default(), send)
    } else if let Some(content) = content {
        head.push_str(&format!("Content-Length: {}\r\n", content.len()));
        content[..send.cut.unwrap_or(content.len()).min(content.len())].to_vec()
    } else {
        Vec::new()
    };
    head.push_str("\r\n");
    (head.into_bytes(), body)
}

fn chunks(content: &[u8], send: &Send) -> Vec<u8> {
    let sent = &content[..send.cut.unwrap_or(content.len()).min(content.len())];
    let mut body = Vec::new();
    for chunk in sent.chunks(send.chunked.unwrap_or(content.len()).max(1)) {
        body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
    }
    if send.cut.is_none() {
        body.extend_from_slice(b"0\r\n");
        for (name, value) in &send.trailers {
            body.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        body.extend_from_slice(b"\r\n");
    }
    body
}

struct Reader {
    from: OwnedReadHalf,
    buffer: BytesMut,
    is_head: bool,
}

impl Reader {
    async fn answer(&mut self) -> Result<WireResponse, ExchangeError> {
        loop {
            let head = self.head().await?;
            if head.status >= 200 || head.status == 101 {
                return self.rest(head).await;
            }
        }
    }

    async fn head(&mut self) -> Result<WireResponse, ExchangeError> {
        loop {
            if let Some(head) = self.parse_head()? {
                return Ok(head);
            }
            if self.more().await.map_err(|error| ExchangeError::because("read the answer", error))? == 0 {
                return Err(ExchangeError("the connection was closed without an answer".into()));
            }
        }
    }

    fn parse_head(&mut self) -> Result<Option<WireResponse>, ExchangeError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = head.parse(&self.buffer).map_err(|error| ExchangeError::because("the answer", error))?;
        let httparse::Status::Complete(length) = parsed else {
            return Ok(None);
        };
        let status = head.code.unwrap_or_default();
        let headers = owned(head.headers);
        self.buffer.advance(length);
        Ok(Some(WireResponse { status, headers, ..WireResponse::default() }))
    }

    /// The body that belongs to `head`.
    async fn rest(&mut self, mut answer: WireResponse) -> Result<WireResponse, ExchangeError> {
        if self.is_head || matches!(answer.status, 100..=199 | 204 | 304) {
            return Ok(answer);
        }
        let is_chunked = lines(&answer.headers, "transfer-encoding").any(|value| &value[..] == b"chunked");
        let length = lines(&answer.headers, "content-length").next();
        let length = length.and_then(|length| std::str::from_utf8(length).ok()?.parse::<usize>().ok());
        let mut body = Vec::new();
        let ended = match (is_chunked, length) {
            (true, _) => self.chunked(&mut body, &mut answer.trailers).await,
            (false, Some(length)) => self.exact(length, &mut body).await,
            (false, None) => self.until_closed(&mut body).await,
        };
        answer.cut = ended.is_err();
        answer.body = body.into();
        Ok(answer)
    }

    async fn exact(&mut self, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.buffer.is_empty() && self.more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let part = self.buffer.split_to(left.min(self.buffer.len()));
            left -= part.len();
            body.extend_from_slice(&part);
        }
        Ok(())
    }

    async fn until_closed(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        while self.more().await? > 0 {}
        body.extend_from_slice(&self.buffer.split());
        Ok(())
    }

    async fn chunked(&mut self, body: &mut Vec<u8>, trailers: &mut Vec<(String, Bytes)>) -> io::Result<()> {
        loop {
            let line = self.line().await?;
            let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let size =
                std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
            match size.ok_or(io::ErrorKind::InvalidData)? {
                0 => break,
                size => self.exact(size, body).await?,
            }
            self.line().await?;
        }
        loop {
            let line = self.line().await?;
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                return if line.is_empty() { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) };
            };
            let name = String::from_utf8_lossy(&line[..colon]).into_owned();
            trailers.push((name, Bytes::copy_from_slice(line[colon + 1..].trim_ascii())));
        }
    }

    /// The next line without its end.
    async fn line(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.split_to(end).freeze();
                self.buffer.advance(2);
                return Ok(line);
            }
            if self.more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn more(&mut self) -> io::Result<usize> {
        if self.buffer.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.from.read_buf(&mut self.buffer).await
    }
}

fn owned(fields: &[httparse::Header<'_>]) -> Vec<(String, Bytes)> {
    fields.iter().map(|field| (field.name.to_owned(), Bytes::copy_from_slice(field.value))).collect()
}
