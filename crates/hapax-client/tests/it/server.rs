//! [`Server`]: takes one request for each connection and does with it what the next [`Step`] of its script says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hapax_client::{Client, ClientBuilder, RetryPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with one connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Closes it without reading.
    CloseUnread,
    /// Reads the request and closes.
    CloseRead,
    /// Reads the request and never answers.
    Hang,
    /// Reads the request and sends these bytes.
    Send(String),
}

/// An answer with a status, fields and a body.
pub(crate) fn answer(status: u16, fields: &[(&str, &str)], body: &str) -> Step {
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    Step::Send(format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{fields}\r\n{body}"
    ))
}

/// An answer with nothing but a status.
pub(crate) fn status(status: u16) -> Step {
    answer(status, &[], "")
}

/// An answer whose body is cut off.
pub(crate) fn cut(status: u16) -> Step {
    Step::Send(format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 100\r\n\r\n{{"))
}

/// A refusal of this type.
pub(crate) fn problem(status: u16, code: &str, fields: &[(&str, &str)]) -> Step {
    let body = format!(r#"{{"type":"https://hapax.dev/errors/{code}","operation":"5f1c"}}"#);
    answer(status, &[fields, &[("content-type", "application/problem+json")]].concat(), &body)
}

/// A request as it arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    /// Names in lower case, in the order in which they came.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(field, _)| field == name);
        let (_, value) = values.next()?;
        assert_eq!(values.next(), None, "{name} came twice");
        Some(value)
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.field("idempotency-key")
    }
}

pub(crate) struct Server {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// A server with a script. A connection beyond it gets status 599.
    pub(crate) async fn with(script: impl IntoIterator<Item = Step>) -> Self {
        Self::start(script, std::iter::repeat(status(599))).await
    }

    /// A server that takes no connection after those of its script.
    pub(crate) async fn that_ends(script: impl IntoIterator<Item = Step>) -> Self {
        Self::start(script, std::iter::empty()).await
    }

    async fn start(
        script: impl IntoIterator<Item = Step>,
        rest: impl Iterator<Item = Step> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Vec<Step> = script.into_iter().collect();
        let log = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut steps = script.into_iter().chain(rest).peekable();
            let mut listener = Some(listener);
            while let Some(step) = steps.next() {
                let Ok((connection, _)) = listener.as_ref().unwrap().accept().await else { return };
                if steps.peek().is_none() {
                    // Before the last answer, so that the client finds it closed.
                    listener.take();
                }
                tokio::spawn(serve(connection, step, Arc::clone(&log)));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests that were read, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen().len()
    }
}

async fn serve(mut connection: TcpStream, step: Step, log: Arc<Mutex<Vec<Seen>>>) {
    if matches!(step, Step::CloseUnread) {
        return;
    }
    let Some(request) = read(&mut connection).await else { return };
    log.lock().unwrap().push(request);
    match step {
        Step::CloseUnread | Step::CloseRead => {}
        Step::Hang => std::future::pending().await,
        Step::Send(bytes) => {
            // A client that has left reads no answer.
            let _ = connection.write_all(bytes.as_bytes()).await;
            let _ = connection.shutdown().await;
        }
    }
}

async fn read(connection: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head_length = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        (connection.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    };
    let head = String::from_utf8(bytes[..head_length].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next().unwrap().to_owned();
    let fields: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let mut body = bytes.split_off(head_length);
    let mut request = Seen { line, fields, body: Vec::new() };
    let length: Option<usize> = request.field("content-length").map(|length| length.parse().unwrap());
    let is_chunked = request.field("transfer-encoding").is_some();
    let is_complete = |body: &[u8]| match length {
        Some(length) => body.len() >= length,
        None => !is_chunked || body.ends_with(b"0\r\n\r\n"),
    };
    while !is_complete(&body) {
        (connection.read_buf(&mut body).await.ok()? > 0).then_some(())?;
    }
    request.body = body;
    Some(request)
}

/// A client with short pauses, on plain connections.
pub(crate) fn builder() -> ClientBuilder {
    let http = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never());
    Client::builder().http(http.build().unwrap()).retry(quick()).deadline(Duration::from_secs(20))
}

/// Two retries, with short pauses.
pub(crate) fn quick() -> RetryPolicy {
    RetryPolicy::default().base(Duration::from_millis(1)).cap(Duration::from_millis(2))
}

pub(crate) fn client() -> Client {
    builder().build().unwrap()
}

/// An address on which no server listens.
pub(crate) async fn refusing_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}
