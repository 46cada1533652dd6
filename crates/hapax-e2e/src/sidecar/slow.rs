//! Slowloris: thousands of clients that send a byte now and then. Measures the memory of each, and checks the limit of
//! connections.
//!
//! Half of them never end the head of a request, half never end its body. The sidecar's timeouts are long, so that no
//! client is disconnected before all are connected.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::footprint::{NO_UPSTREAM, memory_bytes, until_ready};
use crate::rig::sidecar::Sidecar;

/// Descriptors that either process needs beside its connections: its store, its pipes, its listeners.
const OTHER_DESCRIPTORS: u64 = 128;
/// Connections that are opened at a time, below the length of the sidecar's queue.
const AT_ONCE: usize = 256;
/// One address has ports for about 28,000 connections, and some of them may still be in TIME_WAIT.
const CLIENTS_AN_ADDRESS: usize = 4_000;
/// How often every client sends a byte.
const ROUNDS: usize = 5;
/// Connections that are tried beyond the limit.
const TOO_MANY: usize = 64;
/// The timeout of every step.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between checks.
const POLL: Duration = Duration::from_millis(50);
/// By then the sidecar has done all work after its start, or has read every byte.
const SETTLED: Duration = Duration::from_secs(2);

const SLOW_HEAD: &str = "POST /orders HTTP/1.1\r\nHost: slow\r\nX-Slow: ";
const SLOW_BODY: &str =
    "POST /orders HTTP/1.1\r\nHost: slow\r\nIdempotency-Key: \"slow\"\r\nContent-Length: 1000\r\n\r\n";

/// The figures.
#[derive(Clone, Copy, Debug)]
pub struct Slow {
    /// Concurrent connections.
    pub connections: usize,
    /// Resident memory before the first.
    pub idle_bytes: u64,
    /// The most resident memory at any time.
    pub peak_bytes: u64,
    /// Connections beyond the limit that were not refused, and connections within it that were.
    pub cap_faults: usize,
}

impl Slow {
    /// The memory of a connection.
    pub fn bytes_a_connection(&self) -> f64 {
        self.peak_bytes.saturating_sub(self.idle_bytes) as f64 / self.connections as f64
    }
}

/// Opens up to `wanted` slow connections, as far as the limit of open files permits.
///
/// # Errors
/// When the sidecar does not start or does not take the connections.
pub fn run(program: &Path, wanted: usize) -> Result<Slow> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let connections = possible(wanted)?;
    let folder = tempfile::tempdir()?;
    let sidecar = Sidecar::start(program, folder.path(), &settings(connections))?;
    until_ready(sidecar.admin)?;
    runtime.block_on(crowd(&sidecar, connections))
}

/// How many connections fit, with this process's limit raised as far as it may be. The sidecar inherits it.
fn possible(wanted: usize) -> Result<usize> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("cannot raise the limit of open files")?;
    let files = limit.maximum.unwrap_or(u64::MAX);
    let places = usize::try_from(files.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(usize::MAX);
    ensure!(places >= AT_ONCE, "a process may have {files} open files, which is too few");
    Ok(wanted.min(places))
}

fn settings(connections: usize) -> String {
    format!(
        "upstream = \"{NO_UPSTREAM}\"\n\
         [log]\nlevel = \"error\"\n\
         [transport]\nconnections_max = {connections}\n\
         first_byte = \"1h\"\nhead = \"1h\"\nbody_idle = \"1h\"\n"
    )
}

async fn crowd(sidecar: &Sidecar, connections: usize) -> Result<Slow> {
    sleep(SETTLED).await;
    let before = descriptors(sidecar.id())?;
    let idle_bytes = memory_bytes(sidecar.id(), "VmRSS")?;
    let opening = stream::iter(0..connections).map(|number| slow(sidecar.address, number));
    let mut clients: Vec<TcpStream> = opening.buffer_unordered(AT_ONCE).try_collect().await?;
    timeout(PATIENCE, until_descriptors(sidecar.id(), before + connections))
        .await
        .context("the sidecar does not take all connections")??;
    for _ in 0..ROUNDS {
        for client in &mut clients {
            client.write_all(b"x").await.context("a slow client was cut off")?;
        }
    }
    sleep(SETTLED).await;
    let mut cap_faults = 0;
    for number in 0..TOO_MANY {
        cap_faults += usize::from(!is_refused(sidecar.address, connections + number).await?);
    }
    cap_faults += clients.iter().filter(|client| !is_open(client)).count();
    let peak_bytes = memory_bytes(sidecar.id(), "VmHWM")?;
    Ok(Slow { connections, idle_bytes, peak_bytes, cap_faults })
}

/// A client that has begun a request.
async fn slow(to: SocketAddr, number: usize) -> Result<TcpStream> {
    let mut stream = connect(to, number).await?;
    let begin = if number.is_multiple_of(2) { SLOW_HEAD } else { SLOW_BODY };
    stream.write_all(begin.as_bytes()).await?;
    Ok(stream)
}

/// A connection from one of several addresses.
async fn connect(to: SocketAddr, number: usize) -> Result<TcpStream> {
    let last = u8::try_from(2 + number / CLIENTS_AN_ADDRESS).context("there are too many clients")?;
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into())?;
    socket.connect(to).await.context("cannot connect to the sidecar")
}

/// Whether a new connection is closed without an answer.
async fn is_refused(to: SocketAddr, number: usize) -> Result<bool> {
    let mut stream = connect(to, number).await?;
    // It may be closed already.
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: late\r\n\r\n").await;
    let read = timeout(PATIENCE, stream.read(&mut [0; 1])).await;
    Ok(matches!(read, Ok(Ok(0) | Err(_))))
}

/// Whether nothing has come, not even the end.
fn is_open(client: &TcpStream) -> bool {
    client.try_read(&mut [0; 1]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

async fn until_descriptors(process: u32, wanted: usize) -> Result<()> {
    while descriptors(process)? < wanted {
        sleep(POLL).await;
    }
    Ok(())
}

fn descriptors(process: u32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
}
