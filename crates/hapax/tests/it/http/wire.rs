//! Clients with access to every byte: HTTP/1.1 by hand, HTTP/2 by hyper.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// After this, a test counts as hung.
const HANGS: Duration = Duration::from_secs(60);

/// The result of `future`. A test that waits for an event that never occurs fails instead of hanging.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANGS, future).await.expect("it comes")
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    pub(crate) fn post(path: &str) -> Self {
        Self::new("POST", path)
    }

    pub(crate) fn new(method: &str, target: &str) -> Self {
        let (method, target) = (method.to_owned(), target.to_owned());
        Self { method, target, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", &format!("\"{key}\""))
    }

    pub(crate) fn by(self, principal: &str) -> Self {
        self.header("Authorization", principal)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    fn start(&self) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: test\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head
    }

    /// The head, with the length of the body.
    pub(crate) fn head(&self) -> Vec<u8> {
        format!("{}Content-Length: {}\r\n\r\n", self.start(), self.body.len()).into_bytes()
    }

    pub(crate) fn wire(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }

    /// The same with its body in chunks of `size`.
    pub(crate) fn chunked(&self, size: usize) -> Vec<u8> {
        let mut wire = format!("{}Transfer-Encoding: chunked\r\n\r\n", self.start()).into_bytes();
        for chunk in self.body.chunks(size) {
            wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(b"0\r\n\r\n");
        wire
    }

    /// The same as `http` types.
    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        let mut request =
            Request::builder().method(self.method.as_str()).uri(format!("http://test{}", self.target));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::from(self.body.clone())).unwrap()
    }
}

/// A response, over either protocol.
#[derive(Clone, Debug, Default)]
pub(crate) struct WireResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

impl WireResponse {
    /// All values of a header, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn is_replayed(&self) -> bool {
        self.header("x-idempotent-replayed") == Some("true")
    }

    /// Checks that it is the handler's first response.
    #[track_caller]
    pub(crate) fn assert_first(&self, status: u16, body: impl AsRef<[u8]>) {
        assert_eq!((self.status, self.body.as_slice()), (status, body.as_ref()), "{self:?}");
        assert_eq!(self.header("x-idempotent-replayed"), None, "{self:?}");
    }

    /// Checks that it is a marked replay of the handler's response.
    #[track_caller]
    pub(crate) fn assert_replay(&self, status: u16, body: impl AsRef<[u8]>) {
        assert_eq!((self.status, self.body.as_slice()), (status, body.as_ref()), "{self:?}");
        assert!(self.is_replayed(), "{self:?}");
    }

    /// Checks that it is a refusal by the layer, with `Retry-After` exactly if a retry may succeed.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, code: &str) {
        let document: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let kind = document["type"].as_str().unwrap_or_default();
        assert_eq!(kind.rsplit('/').next(), Some(code), "{self:?}");
        assert_eq!((self.status, document["status"].as_u64()), (status, Some(status.into())), "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert!(!self.is_replayed(), "{self:?}");
        let waits = self.header("retry-after").map(|seconds| seconds.parse::<u64>().unwrap() >= 1);
        assert_eq!(waits, document["retryable"].as_bool().filter(|is| *is), "{self:?}");
    }
}

/// A connection with access to every byte.
#[derive(Debug)]
pub(crate) struct Http1 {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Http1 {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = in_time(TcpStream::connect(address)).await.unwrap();
        Self { stream, read: Vec::new() }
    }

    /// Closes the connection and opens a new one.
    pub(crate) async fn reopen(&mut self) {
        let address = self.stream.peer_addr().unwrap();
        *self = Self::open(address).await;
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        in_time(self.stream.write_all(bytes)).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, ask: &Ask) -> WireResponse {
        self.send(&ask.wire()).await;
        self.answer().await
    }

    /// Closes the sending side only.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// The next response up to its body.
    pub(crate) async fn head(&mut self) -> WireResponse {
        let line = self.line().await;
        let status = line.split(' ').nth(1).expect("a status line").parse().unwrap();
        WireResponse { status, headers: self.fields().await, ..WireResponse::default() }
    }

    /// The next complete response.
    pub(crate) async fn answer(&mut self) -> WireResponse {
        let mut answer = self.head().await;
        let has_content = !matches!(answer.status, 100..=199 | 204 | 304);
        if let Some(length) = answer.header("content-length").filter(|_| has_content) {
            answer.body = self.bytes(length.parse().unwrap()).await;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                answer.body.extend(chunk);
            }
            answer.trailers = self.fields().await;
        }
        answer
    }

    /// The next chunk of a chunked body; after the last one come its trailers.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line().await, 16).unwrap();
        if size == 0 {
            return None;
        }
        let chunk = self.bytes(size).await;
        self.bytes(2).await;
        Some(chunk)
    }

    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            assert!(self.more().await, "the connection ended too early");
        }
        self.read.drain(..count).collect()
    }

    /// The remaining bytes until the other side closes, with or without a reset.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }

    async fn fields(&mut self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { return fields };
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.read.windows(2).position(|end| end == b"\r\n") {
                let line = self.bytes(end + 2).await;
                return String::from_utf8(line[..end].to_vec()).unwrap();
            }
            assert!(self.more().await, "the connection ended in a line: {:?}", self.read);
        }
    }

    async fn more(&mut self) -> bool {
        in_time(self.stream.read_buf(&mut self.read)).await.is_ok_and(|count| count > 0)
    }
}

/// A connection with concurrent requests.
#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    sender: SendRequest<Full<Bytes>>,
}

impl Http2 {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = in_time(TcpStream::connect(address)).await.unwrap();
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender }
    }

    /// Sends a request. Dropping the future, or the body of its response, resets the stream.
    pub(crate) fn send(&self, ask: &Ask) -> impl Future<Output = Response<Incoming>> + Send + use<> {
        let response = self.sender.clone().send_request(ask.request());
        async move { in_time(response).await.unwrap() }
    }

    pub(crate) async fn ask(&self, ask: &Ask) -> WireResponse {
        let (parts, body) = self.send(ask).await.into_parts();
        let collected = in_time(body.collect()).await.unwrap();
        let trailers = collected.trailers().map(texts).unwrap_or_default();
        let body = collected.to_bytes().to_vec();
        WireResponse { status: parts.status.as_u16(), headers: texts(&parts.headers), body, trailers }
    }
}

fn texts(fields: &http::HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    fields.iter().map(text).collect()
}
