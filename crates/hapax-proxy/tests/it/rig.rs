//! A proxy between a client and an origin, each on its own socket. The tests of `hapax-cli` include this file.
#![allow(dead_code, reason = "neither of the two crates uses all of it")]

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_proxy::{ClientBody, Listener, ListenerOptions, TlsFiles, UpstreamOptions, Workers};
use http::{Request, Response};
use http_body::Body;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// More bytes than all buffers between an origin and a client that reads nothing can hold.
pub(crate) const ENDLESS: usize = 1_000_000_000;

/// A running proxy.
pub(crate) struct Rig {
    pub(crate) address: SocketAddr,
    pub(crate) listener: Arc<Listener>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) served: JoinHandle<()>,
}

/// The settings of a rig.
pub(crate) struct Setup {
    pub(crate) transport: ListenerOptions,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) upstream: UpstreamOptions,
    /// None: the runtime of the test.
    pub(crate) workers: Option<Workers>,
    /// Sets up the listener further.
    pub(crate) configure: fn(Listener) -> Listener,
}

impl Default for Setup {
    /// The defaults, except that idle upstream connections are kept for an hour: the machine may pause between two
    /// requests.
    fn default() -> Self {
        let mut upstream = UpstreamOptions::default();
        upstream.keep_alive = Duration::from_secs(3600);
        let configure = |listener| listener;
        Self { transport: ListenerOptions::default(), tls: None, upstream, workers: None, configure }
    }
}

impl Setup {
    /// All timeouts of clients are an hour.
    pub(crate) fn with_long_timeouts() -> Self {
        let mut setup = Self::default();
        let transport = &mut setup.transport;
        for span in [
            &mut transport.first_byte,
            &mut transport.head,
            &mut transport.body_idle,
            &mut transport.keep_alive,
            &mut transport.write_idle,
        ] {
            *span = Duration::from_secs(3600);
        }
        setup
    }
}

impl Rig {
    pub(crate) async fn serve<S, B>(service: S, setup: Setup) -> Self
    where
        S: Service<Request<ClientBody>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(any, &setup.transport, setup.tls.as_ref()).await.unwrap();
        let listener = Arc::new((setup.configure)(listener));
        let shutdown = CancellationToken::new();
        let served = tokio::spawn({
            let (listener, shutdown) = (listener.clone(), shutdown.clone());
            let workers = setup.workers.unwrap_or_else(Workers::current);
            async move { listener.serve(service, workers, shutdown).await }
        });
        Self { address: listener.local_addr(), listener, shutdown, served }
    }

    /// A proxy with default settings in front of one origin.
    pub(crate) async fn in_front_of(origin: &Origin) -> Self {
        Self::start(&[origin.url()], Setup::default()).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Writes these bytes on a new connection, and reads until the proxy closes it.
    pub(crate) async fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        // The proxy may close before it has read everything.
        let _closed = stream.write_all(bytes.as_ref()).await;
        read_to_end(&mut stream).await
    }
}

/// Reads until the other side closes or resets.
pub(crate) async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads until the received bytes end with `end`.
pub(crate) async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &[u8]) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        let byte = stream.read_u8().await;
        let Ok(byte) = byte else { panic!("ended with {:?}", String::from_utf8_lossy(&read)) };
        read.push(byte);
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// A server that runs a script for each connection.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    pub(crate) log: Log,
}

/// The bytes that an origin received: one entry per connection.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Vec<u8>>>>);

impl Log {
    pub(crate) fn connections(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    /// The number of request lines in the received bytes.
    pub(crate) fn requests(&self) -> usize {
        self.text().matches(" HTTP/1.1\r\n").count()
    }
}

/// One connection of an origin, which logs what it reads.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    log: Log,
    index: usize,
    unread: Vec<u8>,
}

impl Origin {
    /// Runs this script for every connection.
    pub(crate) async fn start<F, R>(script: F) -> Self
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

    /// Responds to every request with 200 and `ok`.
    pub(crate) async fn ok() -> Self {
        Self::always("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await
    }

    /// Sends this in response to every request.
    pub(crate) async fn always(answer: &'static str) -> Self {
        Self::start(move |mut peer| async move {
            loop {
                peer.request().await?;
                peer.write(answer).await?;
            }
        })
        .await
    }

    /// Sends this in response to the first request of a connection, and closes it.
    pub(crate) async fn answering(answer: &'static str) -> Self {
        Self::start(move |mut peer| async move {
            peer.request().await?;
            peer.write(answer).await
        })
        .await
    }

    /// Responds to the first request of a connection with this many bytes. The channel tells when they are sent, or the
    /// connection is closed.
    pub(crate) async fn sending(bytes: usize) -> (Self, UnboundedReceiver<()>) {
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

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Peer {
    /// Reads some bytes; none at the end of the stream.
    pub(crate) async fn read(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 4096];
        let count = self.stream.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
        bytes.truncate(count);
        self.log.0.lock()[self.index].extend_from_slice(&bytes);
        Some(bytes)
    }

    /// Reads the head and the body of one request, without validation.
    pub(crate) async fn request(&mut self) -> Option<(String, Vec<u8>)> {
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

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> Option<()> {
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
