//! [`Host`]: what a peer runs on, and its runs on it. The server has a core to itself; the load, the Redis server and the
//! service behind a proxy share the other one.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use super::catalogue::{Base, Peer, Program, StoreKind, bare};
use super::install::{HAPROXY, Installed};
use crate::bench_http::driver::ORDERS;
use crate::bench_http::{OTHER_CORE, SERVER_CORE, pin};
use crate::rig::child::ChildProcess;
use crate::rig::sidecar::Sidecar;
use crate::sidecar::nginx::Nginx;

/// How long a claim is valid without renewal, where a peer can be told: short, so that the probe can wait it out.
pub(super) const LOCK: Duration = Duration::from_secs(1);

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(30);
/// The pause between checks whether it listens.
const POLL: Duration = Duration::from_millis(10);
/// The path on which `idempotent-proxy` serves the URL in its variable of that name.
const URL_ORDERS: &str = "/URL_ORDERS";

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

    /// Removes all records on the Redis server.
    pub(super) fn flush(&self) -> Result<()> {
        self.valkey.flush()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("REDIS_URL", self.redis_url())
            .env("LOCK_MS", LOCK.as_millis().to_string())
            .env("NODE_ENV", "production")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stderr(Stdio::null());
        command
    }
}

/// The Redis server of all peers, without persistence.
struct Valkey {
    _process: ChildProcess,
    _folder: TempDir,
    address: SocketAddr,
}

impl Valkey {
    fn start(program: &Path) -> Result<Self> {
        let (folder, address) = (tempfile::tempdir()?, free_address()?);
        let mut command = Command::new(program);
        command.args(["--save", "", "--bind", "127.0.0.1", "--port", &address.port().to_string()]);
        command.arg("--dir").arg(folder.path()).stdout(Stdio::null());
        let mut process = ChildProcess::spawn(&mut command)?;
        until_listening(address, &mut process)?;
        Ok(Self { _process: process, _folder: folder, address })
    }

    fn flush(&self) -> Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(b"FLUSHALL\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        ensure!(&answer == b"+OK\r\n", "the Redis server was not flushed");
        Ok(())
    }
}

/// The records of one peer, and the service behind it if it is a proxy. Its runs follow each other on the same records.
pub(super) struct Host<'a> {
    tools: &'a Tools,
    peer: &'static Peer,
    folder: TempDir,
    upstream: Option<Run>,
}

impl<'a> Host<'a> {
    /// Empty records.
    ///
    /// # Errors
    /// When the service behind a proxy does not start.
    pub(super) fn open(tools: &'a Tools, peer: &'static Peer) -> Result<Self> {
        tools.flush()?;
        let folder = tempfile::tempdir()?;
        let upstream = match peer.base {
            Base::Proxy => Some(start_service(tools, bare(Base::Axum), folder.path(), OTHER_CORE)?),
            Base::Axum | Base::Express | Base::FastApi => None,
        };
        Ok(Self { tools, peer, folder, upstream })
    }

    /// Starts the peer.
    ///
    /// # Errors
    /// When it does not listen.
    pub(super) fn start(&self) -> Result<Run> {
        let Some(upstream) = &self.upstream else {
            return start_service(self.tools, self.peer, self.folder.path(), SERVER_CORE);
        };
        pinned(SERVER_CORE, || self.start_proxy(upstream.address))
    }

    fn start_proxy(&self, upstream: SocketAddr) -> Result<Run> {
        let folder = self.folder.path();
        match self.peer.program {
            Program::Nginx => {
                let nginx = Nginx::start(folder, upstream, 1)?;
                Ok(Run {
                    address: nginx.address,
                    path: ORDERS,
                    counts: upstream,
                    process: Process::Nginx(nginx),
                })
            }
            Program::Hapax => {
                let lease = LOCK.as_millis();
                let settings = format!(
                    "upstream = \"http://{upstream}\"\n[log]\nlevel = \"error\"\n[defaults]\nlease = \"{lease}ms\"\n"
                );
                let sidecar = Sidecar::start(&self.tools.hapax, folder, &settings)?;
                let address = sidecar.address;
                Ok(Run { address, path: ORDERS, counts: upstream, process: Process::Sidecar(sidecar) })
            }
            Program::Haproxy => {
                let address = free_address()?;
                let config = folder.join("haproxy.cfg");
                fs::write(&config, haproxy(address, upstream))?;
                let mut command = Command::new(HAPROXY);
                listening(command.arg("-f").arg(config), address, ORDERS, upstream)
            }
            Program::IdempotentProxy => {
                let address = free_address()?;
                // It does not start without this file.
                fs::write(folder.join(".env"), "")?;
                let mut command = self.tools.command(&self.tools.installed.idempotent_proxy());
                if self.peer.store != StoreKind::Redis {
                    command.env_remove("REDIS_URL");
                }
                command
                    .current_dir(folder)
                    .env("SERVER_ADDR", address.to_string())
                    .env(URL_ORDERS.trim_start_matches('/'), format!("http://{upstream}{ORDERS}"))
                    .env("TOKIO_WORKER_THREADS", "1")
                    .env("LOG_LEVEL", "error");
                listening(&mut command, address, URL_ORDERS, upstream)
            }
            Program::Rust(..) | Program::Node(_) | Program::Python(_) => bail!("it is not a proxy"),
        }
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
    process: Process,
}

enum Process {
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

fn start_service(tools: &Tools, peer: &Peer, folder: &Path, core: usize) -> Result<Run> {
    let installed = &tools.installed;
    let mut command = match peer.program {
        Program::Rust(bin, store) => {
            let mut command = tools.command(&installed.rust(bin));
            command.arg(store);
            command
        }
        Program::Node(script) => {
            let mut command = tools.command(Path::new("node"));
            command.arg(installed.script(script));
            command
        }
        Program::Python(script) => {
            let mut command = tools.command(&installed.interpreter());
            command.arg(super::install::sources("python").join(script).with_extension("py"));
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

fn listening(
    command: &mut Command,
    address: SocketAddr,
    path: &'static str,
    counts: SocketAddr,
) -> Result<Run> {
    let mut process = ChildProcess::spawn(command.stderr(Stdio::null()))?;
    // Without a reader, a server that logs would block.
    let (lines, _) = mpsc::channel();
    process.send_lines(lines)?;
    until_listening(address, &mut process)?;
    Ok(Run { address, path, counts, process: Process::Child(process) })
}

fn until_listening(address: SocketAddr, process: &mut ChildProcess) -> Result<()> {
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
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Connections on both sides are kept open, as by nginx.
fn haproxy(address: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        "global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend orders
    bind {address}
    default_backend service
backend service
    server service {upstream}
"
    )
}
