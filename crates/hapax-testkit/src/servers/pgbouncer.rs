//! [`PgBouncer`]: a `pgbouncer` process in front of a server, in transaction pooling mode.

use std::path::Path;
use std::process::{Child, Stdio};

use parking_lot::Mutex;
use tempfile::TempDir;

use super::PostgresServer;
use super::start::{PORT_TRIES, User, command_as, free_port, wait_until_ready};

/// Its log line when it serves.
const READY: [&str; 1] = ["process up"];

/// Debian's path, which is not in every `PATH`.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// The name of its configuration file.
const FILE: &str = "pgbouncer.ini";

/// The command that installs it.
const INSTALL: &str = "apt-get install -y pgbouncer";

/// Fewer connections than stores have, so that they are shared.
const SERVER_CONNECTIONS: usize = 3;

/// The pause before it retries a server that it could not reach. Its default is longer than a test.
const RETRY_AFTER_S: u32 = 1;

/// A pooler, killed on drop.
#[derive(Debug)]
pub struct PgBouncer {
    dir: TempDir,
    user: Option<User>,
    port: u16,
    child: Mutex<Option<Child>>,
}

impl PgBouncer {
    /// Starts one in front of `server`, which must not speak TLS.
    ///
    /// # Panics
    /// When it cannot be started. If it is not installed, the message has the command that installs it.
    pub fn start(server: &PostgresServer) -> Self {
        let dir = TempDir::new().expect("a temporary directory can be made");
        let user = User::unprivileged();
        if let Some(user) = user {
            user.own(dir.path());
        }
        let mut said = String::new();
        for _ in 1..PORT_TRIES {
            let port = free_port();
            let lines = format!(
                "[databases]\n* = host=127.0.0.1 port={} user=postgres\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
                 pool_mode = transaction\ndefault_pool_size = {SERVER_CONNECTIONS}\nmax_client_conn = 200\n\
                 server_login_retry = {RETRY_AFTER_S}\n",
                server.port()
            );
            std::fs::write(dir.path().join(FILE), lines).expect("the file can be written");
            match spawn(dir.path(), user) {
                Ok(child) => return Self { dir, user, port, child: Mutex::new(Some(child)) },
                Err(instead) => said = instead,
            }
        }
        panic!("pgbouncer does not start: {said} (is it installed? {INSTALL})");
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the server's database through it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Kills it with SIGKILL, as a crash would.
    pub fn kill(&self) {
        if let Some(mut child) = self.child.lock().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again on the same port, after [`kill`](Self::kill).
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn restart(&self) {
        let started = spawn(self.dir.path(), self.user);
        *self.child.lock() = Some(started.expect("the pooler starts again on its port"));
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(dir: &Path, user: Option<User>) -> Result<Child, String> {
    let mut child = command_as(user, Path::new(PROGRAM))
        .arg(dir.join(FILE))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("pgbouncer cannot be started ({error}); install it: {INSTALL}"));
    let log = child.stderr.take().expect("its output is piped");
    wait_until_ready("pgbouncer", log, &READY)
        .inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })
        .map(|()| child)
}
