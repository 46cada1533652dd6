//! nginx as a plain reverse proxy, with its own configuration and folder.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// Debian's path.
const NGINX: &str = "/usr/sbin/nginx";
/// How long it may take to listen.
const START_MAX: Duration = Duration::from_secs(30);
/// The pause between checks whether it listens.
const POLL: Duration = Duration::from_millis(10);

/// A running nginx. Dropping it ends it and its workers.
#[derive(Debug)]
pub(crate) struct Nginx {
    process: Child,
    config: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Nginx {
    /// Starts it in `folder`, with so many workers.
    pub(crate) fn start(folder: &Path, upstream: SocketAddr, workers: usize) -> Result<Self> {
        // Nginx does not report a port that the system chose, so it gets one that was free just now.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let config = folder.join("nginx.conf");
        fs::write(&config, settings(folder, address, upstream, workers))?;
        let process = command(&config).spawn().with_context(|| format!("cannot start {NGINX}"))?;
        let mut nginx = Self { process, config, address };
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(address).is_err() {
            ensure!(nginx.process.try_wait()?.is_none(), "nginx exited");
            ensure!(Instant::now() < deadline, "nginx does not listen");
            sleep(POLL);
        }
        Ok(nginx)
    }

    /// The process id of the master.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master must end its workers, so it is stopped instead of killed.
        let _ = command(&self.config).args(["-s", "stop"]).stderr(Stdio::null()).status();
        let _ = self.process.wait();
    }
}

fn command(config: &Path) -> Command {
    let mut command = Command::new(NGINX);
    command.arg("-c").arg(config).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Connections on both sides are kept open as long as by the sidecar. Each worker has its own listening socket: with a
/// shared one, one worker accepts nearly all connections in some rounds, and nginx serves a third less.
fn settings(folder: &Path, address: SocketAddr, upstream: SocketAddr, workers: usize) -> String {
    let folder = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {folder}/{kind};\n"))
        .concat();
    format!(
        "daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
{temporary}    upstream origin {{
        server {upstream};
        keepalive 256;
        keepalive_requests 1000000000;
    }}
    server {{
        listen {address} reuseport;
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
        }}
    }}
}}
"
    )
}
