//! [`Host`]: what a peer runs on, and its runs on it. The server has a core to itself; the load, the Redis server and the
//! service behind a proxy share the other one.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use super::catalogue::{Base, Peer, Program, bare};
use super::install::{Installed, sources};
use super::valkey::Valkey;
use crate::bench_http::driver::ORDERS;
use crate::bench_http::{OTHER_CORE, SERVER_CORE, pin};
use crate::rig::child::ChildProcess;
use crate::rig::sidecar::Sidecar;
use crate::sidecar::nginx::Nginx;

/// How long a claim is valid without renewal under load, where a peer can be told: the default of Hapax.
pub(super) const LOCK: Duration = Duration::from_secs(30);

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(30);
/// The pause between checks whether it listens.
const POLL: Duration = Duration::from_millis(10);

/// What all peers need.
pub(super) struct Tools {
    /// The installed peers.
    pub(super) installed: Installed,
    /// The `hapax` to run.
    pub(super) hapax: PathBuf,
    valkey: Valkey,
}

impl Tools {
    /// Installs and starts what all peers need.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn start(hapax: PathBuf) -> Result<Self> {
        let mut installed = Installed::open()?;
        installed.install_python()?;
        pin(OTHER_CORE);
        let valkey = Valkey::start(&installed.valkey()?)?;
        Ok(Self { installed, hapax, valkey })
    }

    /// The URL of the Redis server.
    pub(super) fn redis_url(&self) -> String {
        format!("redis://{}", self.valkey.address)
    }

    /// The process id of the Redis server.
    pub(super) fn redis_id(&self) -> u32 {
        self.valkey.process.id()
    }

    /// Removes all records on the Redis server.
    pub(super) fn flush(&self) -> Result<()> {
        self.valkey.flush()
    }

    /// A command with what the peers are told.
    pub(super) fn command(&self, program: &Path, lock: Duration) -> Command {
        let mut command = Command::new(program);
        command
            .env("REDIS_URL", self.redis_url())
            .env("LOCK_MS", lock.as_millis().to_string())
            .env("NODE_ENV", "production")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stderr(Stdio::null());
        command
    }
}

/// The records of one peer, and the service behind it if it is a proxy. Its runs follow each other on the same records.
pub(super) struct Host<'a> {
    pub(super) tools: &'a Tools,
    pub(super) peer: &'static Peer,
    /// How long a claim is valid without renewal.
    pub(super) lock: Duration,
    pub(super) folder: TempDir,
    upstream: Option<Run>,
}

impl<'a> Host<'a> {
    /// Empty records.
    ///
    /// # Errors
    /// When the service behind a proxy does not start.
    pub(super) fn open(tools: &'a Tools, peer: &'static Peer, lock: Duration) -> Result<Self> {
        tools.flush()?;
        let folder = tempfile::tempdir()?;
        let upstream = match peer.base {
            Base::Proxy => Some(start_service(tools, bare(Base::Axum), folder.path(), OTHER_CORE, lock)?),
            Base::Axum | Base::Express | Base::FastApi => None,
        };
        Ok(Self { tools, peer, lock, folder, upstream })
    }

    /// Starts the peer.
    ///
    /// # Errors
    /// When it does not listen.
    pub(super) fn start(&self) -> Result<Run> {
        let Some(upstream) = &self.upstream else {
            return start_service(self.tools, self.peer, self.folder.path(), SERVER_CORE, self.lock);
        };
        pinned(SERVER_CORE, || self.start_proxy(upstream.address))
    }
}

/// A running peer. Dropping it kills it.
pub(super) struct Run {
    /// Its address.
    pub(super) address: SocketAddr,
    /// The path of orders.
    pub(super) path: &'static str,
    /// The address of the service that counts executions.
    pub(super) counts: SocketAddr,
    pub(super) process: Process,
}

/// How it is ended and identified.
pub(super) enum Process {
    Child(ChildProcess),
    Nginx(Nginx),
    Sidecar(Sidecar),
}

impl Run {
    /// The process id, of the first process where there are several.
    pub(super) fn id(&self) -> u32 {
        match &self.process {
            Process::Child(child) => child.id(),
            Process::Nginx(nginx) => nginx.id(),
            Process::Sidecar(sidecar) => sidecar.id(),
        }
    }

    /// Whether the executions are counted by another process.
    pub(super) fn is_proxy(&self) -> bool {
        self.counts != self.address
    }
}

fn start_service(tools: &Tools, peer: &Peer, folder: &Path, core: usize, lock: Duration) -> Result<Run> {
    let installed = &tools.installed;
    let mut command = match peer.program {
        Program::Rust(bin, store) => {
            let mut command = tools.command(&installed.rust(bin), lock);
            command.arg(store);
            command
        }
        Program::Node(script) => {
            let mut command = tools.command(Path::new("node"), lock);
            command.arg(installed.script(script));
            command
        }
        Program::Python(script) => {
            let mut command = tools.command(&installed.interpreter(), lock);
            command.arg(sources("python").join(script).with_extension("py"));
            command
        }
        _ => bail!("it is not a service"),
    };
    command.env("DATA_FOLDER", folder);
    let mut process = pinned(core, || ChildProcess::spawn(&mut command))?;
    let address = announced(&mut process)?;
    Ok(Run { address, path: ORDERS, counts: address, process: Process::Child(process) })
}

/// The address in the line `listening ADDRESS`, which is the first one that a service prints.
fn announced(process: &mut ChildProcess) -> Result<SocketAddr> {
    let output = process.stdout()?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let _ = tell.send(lines.find_map(|line| Some(line.strip_prefix("listening ")?.to_owned())));
        lines.for_each(drop);
    });
    let address = told.recv_timeout(START_MAX).context("the server does not listen")?;
    Ok(address.context("the server ended before it listened")?.parse()?)
}

/// Waits until it can be connected to.
pub(super) fn until_listening(address: SocketAddr, process: &mut ChildProcess) -> Result<()> {
    let deadline = Instant::now() + START_MAX;
    while TcpStream::connect(address).is_err() {
        ensure!(process.is_running()?, "the server ended before it listened");
        ensure!(Instant::now() < deadline, "the server does not listen");
        sleep(POLL);
    }
    Ok(())
}

/// Processes inherit the core of the thread that starts them.
fn pinned<T>(core: usize, start: impl FnOnce() -> T) -> T {
    pin(core);
    let started = start();
    pin(OTHER_CORE);
    started
}

/// One that was free just now, for servers that do not report a port that the system chose.
pub(super) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
