//! A proxy between a client and an origin, each on a socket of its own.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hapax::http::IdempotencyLayer;
use hapax::http::settings::Span;
use hapax::{Hapax, MemoryStore};
use http::Uri;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower_layer::Layer;

use crate::proxy::workers::Workers;
use crate::proxy::{Forward, Listener, Tls, Transport, UpstreamOptions};

/// As much as no buffer between an origin and a client that takes nothing can hold.
pub(super) const ENDLESS: usize = 1_000_000_000;

/// A proxy that serves.
pub(super) struct Rig {
    pub(super) address: SocketAddr,
    pub(super) listener: Arc<Listener>,
    pub(super) stop: CancellationToken,
    pub(super) served: JoinHandle<()>,
}

/// What can be different about a rig.
pub(super) struct Setup {
    pub(super) transport: Transport,
    pub(super) tls: Option<Tls>,
    pub(super) upstream: UpstreamOptions,
    /// None: everything runs on the runtime of the test.
    pub(super) workers: Option<Workers>,
}

impl Default for Setup {
    /// As it is by default, but with all the time of the world for connections that are not in use: the machine may
    /// stop for a while between two requests.
    fn default() -> Self {
        let keep_alive = Span(Duration::from_secs(3600));
        let upstream = UpstreamOptions { keep_alive, ..UpstreamOptions::default() };
        Self { transport: Transport::default(), tls: None, upstream, workers: None }
    }
}

impl Rig {
    /// A proxy with the layer in front of these origins.
    pub(super) async fn start(origins: &[String], setup: Setup) -> Self {
        let uris: Vec<Uri> = origins.iter().map(|origin| origin.parse().unwrap()).collect();
        let forward = Forward::new(&uris, &setup.upstream).unwrap();
        let hapax = Hapax::new(MemoryStore::new());
        let service = IdempotencyLayer::new(&hapax).layer(forward);
        Self::serve(service, setup).await
    }

    /// A proxy with the layer in front of one origin, and nothing else said.
    pub(super) async fn before(origin: &Origin) -> Self {
        Self::start(&[origin.url()], Setup::default()).await
    }

    pub(super) async fn serve<S, B>(service: S, setup: Setup) -> Self
    where
        S: tower_service::Service<
                http::Request<crate::proxy::received::Received>,
                Response = http::Response<B>,
                Error = Infallible,
            > + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(any, &setup.transport, setup.tls.as_ref()).await.unwrap();
        let listener = Arc::new(listener);
        let stop = CancellationToken::new();
        let served = tokio::spawn({
            let (listener, stop) = (listener.clone(), stop.clone());
            let workers = setup.workers.unwrap_or_else(Workers::current);
            async move { listener.serve(service, workers, stop).await }
        });
        Self { address: listener.local_addr(), listener, stop, served }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Writes these bytes on a connection of their own, and reads until the proxy closes it.
    pub(super) async fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        // The proxy may close before it has read everything.
        let _closed = stream.write_all(bytes.as_ref()).await;
        read_to_end(&mut stream).await
    }
}

/// Everything until the other side ends, or resets.
pub(super) async fn read_to_end(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads until what was read ends like this.
pub(super) async fn read_until(stream: &mut (impl tokio::io::AsyncRead + Unpin), end: &[u8]) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        let byte = stream.read_u8().await;
        let Ok(byte) = byte else { panic!("ended with {:?}", String::from_utf8_lossy(&read)) };
        read.push(byte);
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// A server that is only what its script does.
pub(super) struct Origin {
    pub(super) address: SocketAddr,
    pub(super) log: Log,
}

/// What an origin got: one entry for each connection.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Vec<u8>>>>);

impl Log {
    pub(super) fn connections(&self) -> usize {
        self.0.lock().len()
    }

    pub(super) fn text(&self) -> String {
        self.0.lock().iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    /// How many requests a reader finds that takes every line for what it says.
    pub(super) fn requests(&self) -> usize {
        self.text().matches(" HTTP/1.1\r\n").count()
    }
}

/// One connection at an origin, which logs what it reads.
pub(super) struct Peer {
    pub(super) stream: TcpStream,
    log: Log,
    index: usize,
    unread: Vec<u8>,
}

impl Origin {
    /// Runs the script for every connection.
    pub(super) async fn start<F, R>(script: F) -> Self
    where
        F: Fn(Peer) -> R + Send + 'static,
        R: Future<Output = Option<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, log) = (listener.local_addr().unwrap(), Log::default());
        let logged = log.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let index = {
                    let mut connections = logged.0.lock();
                    connections.push(Vec::new());
                    connections.len() - 1
                };
                tokio::spawn(script(Peer { stream, log: logged.clone(), index, unread: Vec::new() }));
            }
        });
        Self { address, log }
    }

    /// Answers every request with `200 ok`.
    pub(super) async fn ok() -> Self {
        Self::always("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await
    }

    /// Answers every request with this.
    pub(super) async fn always(answer: &'static str) -> Self {
        Self::start(move |mut peer| async move {
            loop {
                peer.request().await?;
                peer.write(answer).await?;
            }
        })
        .await
    }

    /// Does this with each connection whose first request was read.
    pub(super) async fn answering(answer: &'static str) -> Self {
        Self::start(move |mut peer| async move {
            peer.request().await?;
            peer.write(answer).await
        })
        .await
    }

    /// Answers the first request of a connection with so many bytes, and tells when they are sent or nobody takes them.
    pub(super) async fn sending(bytes: usize) -> (Self, UnboundedReceiver<()>) {
        const PART: usize = 65_536;
        let (ended, is_ended) = unbounded_channel();
        let origin = Self::start(move |mut peer| {
            let ended = ended.clone();
            async move {
                peer.request().await?;
                peer.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n")).await?;
                let mut left = bytes;
                while left > 0 && peer.write(&[0; PART][..left.min(PART)]).await.is_some() {
                    left = left.saturating_sub(PART);
                }
                ended.send(()).ok()
            }
        });
        (origin.await, is_ended)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Peer {
    /// Reads some bytes; none at the end.
    pub(super) async fn read(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 4096];
        let count = self.stream.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
        bytes.truncate(count);
        self.log.0.lock()[self.index].extend_from_slice(&bytes);
        Some(bytes)
    }

    /// Reads one request, as a server does that believes what it is told: its head and its body.
    pub(super) async fn request(&mut self) -> Option<(String, Vec<u8>)> {
        let head = self.take_until(b"\r\n\r\n").await?;
        let head = String::from_utf8(head).unwrap();
        let lower = head.to_ascii_lowercase();
        let mut body = Vec::new();
        if lower.contains("\r\ntransfer-encoding: chunked\r\n") {
            loop {
                let line = String::from_utf8(self.take_until(b"\r\n").await?).unwrap();
                let size = usize::from_str_radix(line.trim(), 16).unwrap();
                if size == 0 {
                    while self.take_until(b"\r\n").await? != b"\r\n" {}
                    break;
                }
                let chunk = self.take(size + 2).await?;
                body.extend_from_slice(&chunk[..size]);
            }
        } else if let Some(at) = lower.find("\r\ncontent-length: ") {
            let length = lower[at + 18..].lines().next().unwrap().parse().unwrap();
            body = self.take(length).await?;
        }
        Some((head, body))
    }

    pub(super) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> Option<()> {
        self.stream.write_all(bytes.as_ref()).await.ok()
    }

    async fn take_until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end) {
                return Some(self.unread.drain(..at + end.len()).collect());
            }
            let read = self.read().await?;
            self.unread.extend(read);
        }
    }

    async fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.unread.len() < count {
            let read = self.read().await?;
            self.unread.extend(read);
        }
        Some(self.unread.drain(..count).collect())
    }
}
