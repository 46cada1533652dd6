//! [`PostgresServer`]: a PostgreSQL server process with its own database.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::start::{PORT_TRIES, User, command_as, free_port, postgres_program, wait_until_ready};

/// Log lines of a server that serves, and of a standby.
const READY: [&str; 2] =
    ["database system is ready to accept connections", "ready to accept read-only connections"];

/// The command that installs the server and its command-line client.
const INSTALL: &str = "apt-get install -y postgresql";

/// How long killed processes may take to disappear.
const GONE_WITHIN: Duration = Duration::from_secs(60);
/// The pause before checking again whether processes are gone.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How to start a [`PostgresServer`]. The default does not wait for the disk.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PostgresOptions {
    is_durable: bool,
    settings: Vec<(String, String)>,
    tls: Option<(PathBuf, PathBuf)>,
    primary: Option<u16>,
}

impl PostgresOptions {
    /// Syncs every commit before it is acknowledged, as in production.
    pub fn durable(mut self) -> Self {
        self.is_durable = true;
        self
    }

    /// Any setting, as in `postgresql.conf`.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Serves TLS only, with these PEM files.
    pub fn tls(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls = Some((certificate.into(), key.into()));
        self
    }

    /// Makes it a standby of another server, until it is [promoted](PostgresServer::promote).
    pub fn standby_of(mut self, primary: &PostgresServer) -> Self {
        self.primary = Some(primary.port());
        self
    }

    /// Starts the server.
    ///
    /// # Panics
    /// When it cannot be started. If it is not installed, the message has the command that installs it.
    pub fn start(self) -> PostgresServer {
        let dir = TempDir::new().expect("there is room for a temporary directory");
        let user = User::unprivileged();
        if let Some(user) = user {
            user.own(dir.path());
        }
        match self.primary {
            None => self.make(dir.path(), user),
            Some(primary) => copy(primary, dir.path(), user),
        }
        for _ in 1..PORT_TRIES {
            let port = free_port();
            if let Ok(child) = self.spawn(dir.path(), user, port) {
                return PostgresServer { options: self, dir, user, port, child: Mutex::new(Some(child)) };
            }
        }
        panic!("no port stayed free long enough to start postgres");
    }

    /// Makes the files of a server.
    fn make(&self, dir: &Path, user: Option<User>) {
        let data = dir.join("data");
        let made = command_as(user, &postgres_program("initdb"))
            .args([
                "--no-sync",
                "--no-instructions",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
            ])
            .args(["--locale=C", "--pgdata"])
            .arg(&data)
            .current_dir(dir)
            .output()
            .unwrap_or_else(|error| panic!("initdb cannot be started ({error}); install it: {INSTALL}"));
        assert!(
            made.status.success(),
            "{} (is it installed? {INSTALL})",
            String::from_utf8_lossy(&made.stderr)
        );
        let Some((certificate, key)) = &self.tls else { return };
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = data.join(name);
            std::fs::copy(from, &to).expect("the directory takes a file");
            if let Some(user) = user {
                user.own(&to);
            }
        }
        let only_tls = "hostssl all all 127.0.0.1/32 trust\nhostssl all all ::1/128 trust\n";
        std::fs::write(data.join("pg_hba.conf"), only_tls).expect("the directory takes a file");
    }

    fn spawn(&self, dir: &Path, user: Option<User>, port: u16) -> Result<Child, String> {
        let mut command = command_as(user, &postgres_program("postgres"));
        command.arg("-D").arg(dir.join("data")).args(["-p", &port.to_string()]);
        let usual = [
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("max_connections", "200"),
            ("shared_buffers", "64MB"),
            ("logging_collector", "off"),
            ("fsync", if self.is_durable { "on" } else { "off" }),
            ("full_page_writes", if self.is_durable { "on" } else { "off" }),
            ("ssl", if self.tls.is_some() { "on" } else { "off" }),
        ];
        let settings = usual.into_iter().chain(self.settings.iter().map(|(a, b)| (a.as_str(), b.as_str())));
        for (name, value) in settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("postgres cannot be started ({error}); install it: {INSTALL}"));
        let log = child.stderr.take().expect("its output is piped");
        if let Err(said) = wait_until_ready("postgres", log, &READY) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(said);
        }
        Ok(child)
    }
}

/// A running server, killed on drop.
#[derive(Debug)]
pub struct PostgresServer {
    options: PostgresOptions,
    dir: TempDir,
    user: Option<User>,
    port: u16,
    child: Mutex<Option<Child>>,
}

impl PostgresServer {
    /// Starts a server with the default options.
    ///
    /// # Panics
    /// As [`PostgresOptions::start`].
    pub fn start() -> Self {
        Self::options().start()
    }

    /// Options for starting one.
    pub fn options() -> PostgresOptions {
        PostgresOptions::default()
    }

    /// A server with the default options for all concurrent tests of this process. Each test uses its own schema. It
    /// ends with the last of them.
    ///
    /// # Panics
    /// As [`PostgresOptions::start`].
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(Self::start());
            *shared = Arc::downgrade(&started);
            started
        })
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of its database, at `localhost` when it serves TLS.
    pub fn url(&self) -> String {
        let host = if self.options.tls.is_some() { "localhost" } else { "127.0.0.1" };
        format!("postgres://postgres@{host}:{}/postgres", self.port)
    }

    /// Kills all its processes with SIGKILL, as a crash would: nothing is cleaned up, and the next start recovers.
    ///
    /// # Panics
    /// When one of them does not end.
    pub fn kill(&self) {
        if let Some(mut child) = self.child.lock().take() {
            kill_all(&mut child);
        }
    }

    /// Starts it again on the same port and the same files, after [`kill`](Self::kill).
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn restart(&self) {
        let started = self.options.spawn(self.dir.path(), self.user, self.port);
        *self.child.lock() = Some(started.expect("the server starts again on its port"));
    }

    /// Removes its files and starts it again on its port as a standby of `primary`, after [`kill`](Self::kill).
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn follow(&self, primary: &Self) {
        std::fs::remove_dir_all(self.dir.path().join("data"))
            .expect("a server that is gone leaves its files");
        copy(primary.port(), self.dir.path(), self.user);
        self.restart();
    }

    /// Promotes a standby to a primary.
    ///
    /// # Panics
    /// When it does not become one.
    pub fn promote(&self) {
        assert_eq!(self.sql("SELECT pg_promote()"), "t", "the standby does not become a primary");
    }

    /// Whether its commits wait for a synchronous standby.
    ///
    /// # Panics
    /// As [`sql`](Self::sql).
    pub fn has_synchronous_standby(&self) -> bool {
        self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
    }

    /// Stops all its processes with SIGSTOP; its connections stay open.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues it after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock();
        let first = child.as_ref().expect("the server runs").id();
        // The first process is stopped before the others are listed, so that it starts no more.
        let _ = kill_process(pid(first), signal);
        for id in children(first) {
            // One that has ended meanwhile need not be stopped.
            let _ = kill_process(pid(id), signal);
        }
    }

    /// Runs one statement with `psql` and returns its output: a line for each row, with fields separated by `|`.
    ///
    /// # Panics
    /// When there is no answer, or when it is an error.
    pub fn sql(&self, statement: &str) -> String {
        let output = Command::new("psql")
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", &self.url(), "-c", statement])
            .output()
            .unwrap_or_else(|error| panic!("psql cannot be started ({error}); install it: {INSTALL}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        assert!(output.status.success(), "{statement}: {}", text(&output.stderr));
        text(&output.stdout)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.lock().take() {
            end(&mut child);
        }
    }
}

/// Makes the files of a standby: a copy of its primary's, and the connection to it.
fn copy(primary: u16, dir: &Path, user: Option<User>) {
    let copied = command_as(user, &postgres_program("pg_basebackup"))
        .args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "--username=postgres"])
        .args(["--host=127.0.0.1", "--port", &primary.to_string(), "--pgdata"])
        .arg(dir.join("data"))
        .current_dir(dir)
        .output()
        .unwrap_or_else(|error| panic!("pg_basebackup cannot be started ({error}); install it: {INSTALL}"));
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
}

/// Kills a server and its processes. A remaining process would keep the next server from starting.
fn kill_all(child: &mut Child) {
    // Otherwise it would end the others in its own way when one of them is gone, or start more.
    let _ = kill_process(pid(child.id()), Signal::STOP);
    let others = children(child.id());
    for id in std::iter::once(child.id()).chain(others.iter().copied()) {
        let _ = kill_process(pid(id), Signal::KILL);
    }
    let _ = child.wait();
    let began = Instant::now();
    while others.iter().any(|id| is_alive(*id)) {
        assert!(began.elapsed() < GONE_WITHIN, "a process of the server does not end");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Kills a server and its processes. Killing only the first would leave the others holding its shared memory.
fn end(child: &mut Child) {
    let all: Vec<u32> = std::iter::once(child.id()).chain(children(child.id())).collect();
    let _ = kill_process(pid(child.id()), Signal::QUIT);
    for id in all {
        let _ = kill_process(pid(id), Signal::CONT);
    }
    let _ = child.wait();
}

fn pid(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process has an id")
}

/// The child processes of a process.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| matches!(state_and_parent(*id), Some((_, its_parent)) if its_parent == parent)).collect()
}

/// Whether it has ended; a zombie holds no resources.
fn is_alive(id: u32) -> bool {
    matches!(state_and_parent(id), Some((state, _)) if state != 'Z')
}

/// The state of a process as in `/proc`, and its parent.
fn state_and_parent(id: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it may hold spaces and parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut words = after_name.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}
