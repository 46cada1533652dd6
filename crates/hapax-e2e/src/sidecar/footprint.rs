//! The cost of an idle sidecar: the size of its file, the time until it is ready, its memory.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::rig::sidecar::Sidecar;

/// Nothing is forwarded, so no service is needed.
pub(super) const NO_UPSTREAM: &str = "http://127.0.0.1:9";
/// How long a sidecar may take to be ready.
const READY_MAX: Duration = Duration::from_secs(30);
/// The pause between probes until it is ready.
const POLL: Duration = Duration::from_micros(200);
/// By then all work after the start is done.
const SETTLED: Duration = Duration::from_secs(2);
/// Longer than any answer of the probe.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Bytes of the program's file without symbols.
///
/// # Errors
/// When `strip` (Debian: binutils) is not installed.
pub fn stripped_bytes(program: &Path) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let stripped = folder.path().join("hapax");
    let status = Command::new("strip").arg("-o").arg(&stripped).arg(program).status();
    let status = status.context("cannot start strip: apt-get install -y binutils")?;
    ensure!(status.success(), "strip ended with {status}");
    Ok(fs::metadata(stripped)?.len())
}

/// How long it takes from the start of the program, on an empty store, to the first 200 of `/readyz`.
///
/// # Errors
/// When it does not start.
pub fn start_time(program: &Path) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let begun = Instant::now();
    let sidecar = Sidecar::start(program, folder.path(), &settings())?;
    until_ready(sidecar.admin)?;
    Ok(begun.elapsed())
}

/// Resident bytes of an idle sidecar.
///
/// # Errors
/// When it does not start, or the kernel does not report the figure.
pub fn idle_bytes(program: &Path) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let sidecar = Sidecar::start(program, folder.path(), &settings())?;
    until_ready(sidecar.admin)?;
    sleep(SETTLED);
    memory_bytes(sidecar.id(), "VmRSS")
}

/// A figure of a process's memory, by its name in `/proc/PID/status`.
pub(super) fn memory_bytes(process: u32, figure: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let line = line.with_context(|| format!("the kernel does not report {figure}"))?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}

fn settings() -> String {
    format!("upstream = \"{NO_UPSTREAM}\"\n[log]\nlevel = \"error\"\n")
}

pub(super) fn until_ready(admin: SocketAddr) -> Result<()> {
    let begun = Instant::now();
    while !is_ready(admin)? {
        ensure!(begun.elapsed() < READY_MAX, "the sidecar does not become ready");
        sleep(POLL);
    }
    Ok(())
}

fn is_ready(admin: SocketAddr) -> Result<bool> {
    let mut stream = TcpStream::connect(admin)?;
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(answer.starts_with(b"HTTP/1.1 200 "))
}
