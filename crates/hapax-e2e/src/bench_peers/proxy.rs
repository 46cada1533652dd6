//! Proxies in front of the orders service.

use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use anyhow::{Result, bail};

use super::catalogue::{Program, StoreKind};
use super::install::HAPROXY;
use super::server::{Host, Process, Run, free_address, until_listening};
use crate::bench_http::driver::ORDERS;
use crate::rig::child::ChildProcess;
use crate::rig::sidecar::Sidecar;
use crate::sidecar::nginx::Nginx;

/// The path on which `idempotent-proxy` serves the URL in its variable of that name.
const URL_ORDERS: &str = "/URL_ORDERS";

impl Host<'_> {
    /// Starts the proxy in front of that service.
    pub(super) fn start_proxy(&self, upstream: SocketAddr) -> Result<Run> {
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
                let lease = self.lock.as_millis();
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
                let mut command = self.tools.command(&self.tools.installed.idempotent_proxy(), self.lock);
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
