//! HTTP/2 clients that request large responses and read none of them: how much memory the sidecar holds for them, and
//! whether it frees it.
//!
//! Their flow-control windows are zero from the start, so every response is held until its deadline.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::footprint::{memory_bytes, until_ready};
use crate::rig::sidecar::Sidecar;

/// Streams of one connection: as many as the sidecar allows.
const STREAMS_A_CONNECTION: usize = 100;
/// Bytes of each answer.
const ANSWER_BYTES: usize = 1_000_000;
/// The timeout of every step.
const PATIENCE: Duration = Duration::from_secs(120);
/// By then the sidecar has freed the memory of clients that are gone.
const FREED: Duration = Duration::from_secs(10);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const INITIAL_WINDOW_SIZE: u8 = 4;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The keys of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    /// All with one key: replays of one record.
    One,
    /// Each with its own key: every request is executed.
    Own,
}

/// The figures.
#[derive(Clone, Copy, Debug)]
pub struct Unread {
    /// Streams with unread responses.
    pub streams: usize,
    /// Those of them that were reset.
    pub resets: usize,
    /// Resident memory before the first.
    pub idle_bytes: u64,
    /// The most resident memory at any time.
    pub peak_bytes: u64,
    /// Resident memory some time after the clients were gone.
    pub after_bytes: u64,
}

/// Leaves the responses of about so many streams unread.
///
/// # Errors
/// When the sidecar does not start or does not answer.
pub fn run(program: &Path, streams: usize, keys: Keys) -> Result<Unread> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = service().await?;
        let folder = tempfile::tempdir()?;
        let settings = format!("upstream = \"http://{service}\"\n[log]\nlevel = \"error\"\n");
        let sidecar = Sidecar::start(program, folder.path(), &settings)?;
        until_ready(sidecar.admin)?;
        let idle_bytes = memory_bytes(sidecar.id(), "VmRSS")?;
        let connections = streams.div_ceil(STREAMS_A_CONNECTION);
        let mut clients =
            try_join_all((0..connections).map(|number| UnreadClient::connect(sidecar.address, number, keys)))
                .await?;
        let (first, others) = clients.split_first_mut().context("there is at least one")?;
        // From here on there is a record.
        timeout(PATIENCE, first.request_all()).await.context("the sidecar does not answer in time")??;
        let requests = others.iter_mut().map(UnreadClient::request_all);
        timeout(PATIENCE, try_join_all(requests)).await.context("the sidecar does not answer in time")??;
        let peak_bytes = memory_bytes(sidecar.id(), "VmHWM")?;
        let resets = clients.iter().map(|client| client.resets).sum();
        drop(clients);
        sleep(FREED).await;
        let after_bytes = memory_bytes(sidecar.id(), "VmRSS")?;
        let streams = connections * STREAMS_A_CONNECTION;
        Ok(Unread { streams, resets, idle_bytes, peak_bytes, after_bytes })
    })
}

/// A service that answers every request with [`ANSWER_BYTES`].
async fn service() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    Ok(address)
}

/// Requests have no body, so each ends with its head.
async fn serve(stream: TcpStream) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let answer = [
        format!("HTTP/1.1 200 OK\r\ncontent-length: {ANSWER_BYTES}\r\n\r\n").into_bytes(),
        vec![b'x'; ANSWER_BYTES],
    ]
    .concat();
    let mut head = Vec::new();
    loop {
        head.push(stream.read_u8().await?);
        if head.ends_with(b"\r\n\r\n") {
            stream.write_all(&answer).await?;
            head.clear();
        }
    }
}

/// A connection with a flow-control window of zero.
struct UnreadClient {
    stream: BufReader<TcpStream>,
    number: usize,
    keys: Keys,
    resets: usize,
}

impl UnreadClient {
    async fn connect(to: SocketAddr, number: usize, keys: Keys) -> Result<Self> {
        let mut stream = TcpStream::connect(to).await?;
        let no_room = [0, INITIAL_WINDOW_SIZE, 0, 0, 0, 0];
        let greeting = [PREFACE, &frame(SETTINGS, 0, 0, &no_room), &frame(SETTINGS, ACK, 0, &[])].concat();
        stream.write_all(&greeting).await?;
        Ok(Self { stream: BufReader::new(stream), number, keys, resets: 0 })
    }

    /// Sends a request on every stream, and reads until every response has begun.
    async fn request_all(&mut self) -> Result<()> {
        // The first request is executed. Others with its key that arrived before its end would be refused.
        self.request(1).await?;
        self.until_begun(1).await?;
        for stream in 1..STREAMS_A_CONNECTION {
            self.request(2 * stream + 1).await?;
        }
        self.until_begun(STREAMS_A_CONNECTION - 1).await
    }

    async fn request(&mut self, stream: usize) -> Result<()> {
        let key = match self.keys {
            Keys::One => "one".to_owned(),
            Keys::Own => format!("{}-{stream}", self.number),
        };
        let head = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/orders"),
            (":authority", "shop"),
            ("idempotency-key", &key),
        ];
        let mut fields = Vec::new();
        for (name, value) in head {
            // A literal without indexing and without Huffman coding; no text has more than 126 bytes.
            fields.push(0);
            for text in [name, value] {
                fields.push(u8::try_from(text.len())?);
                fields.extend_from_slice(text.as_bytes());
            }
        }
        let request = frame(HEADERS, END_STREAM | END_HEADERS, u32::try_from(stream)?, &fields);
        Ok(self.stream.write_all(&request).await?)
    }

    /// Reads frames until so many responses have begun.
    async fn until_begun(&mut self, mut wanted: usize) -> Result<()> {
        while wanted > 0 {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.context("the sidecar ended the connection")?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await?;
            ensure!(head[3] != GOAWAY, "the sidecar takes no more streams of a connection");
            wanted -= usize::from(head[3] == HEADERS);
            self.resets += usize::from(head[3] == RST_STREAM);
        }
        Ok(())
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
