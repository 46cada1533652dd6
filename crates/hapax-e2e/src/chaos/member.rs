//! [`Member`]: one sidecar of several, with its networks and its clock.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::time::sleep;

use super::schedule::NetworkLink;
use super::server::Server;
use crate::fault_proxy::{FaultProxy, NetworkFault};
use crate::rig::service::WAIT;
use crate::rig::sidecar::{SidecarOptions, SidecarSlot};

/// The lease. Short, so that faults outlast it.
pub(super) const LEASE: Duration = Duration::from_secs(1);

/// Debian's path of the library that moves a process's clock, below a folder for each architecture.
const LIBRARY_ROOT: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Starts until a sidecar stays up. The store's timeout is so short that on a busy machine the first connection
/// sometimes exceeds it.
const STARTS_MAX: usize = 10;

/// A sidecar, its networks and its clock.
pub(super) struct Member {
    pub(super) slot: SidecarSlot,
    /// One for each address of the store.
    store: Vec<FaultProxy>,
    upstream: FaultProxy,
    clock: Option<Clock>,
    _folder: TempDir,
}

impl Member {
    /// Starts it. `store` is the server that it shares with the others, or none where it has its own store.
    pub(super) async fn start(
        program: &Path,
        store: Option<&dyn Server>,
        has_link: bool,
        upstream: SocketAddr,
        has_clock: bool,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let addresses = store.map(Server::addresses).unwrap_or_default();
        let mut links = Vec::new();
        if has_link {
            for address in &addresses {
                links.push(FaultProxy::start(*address).await?);
            }
        }
        let through: Vec<SocketAddr> = links.iter().map(FaultProxy::address).collect();
        let url = match store {
            None => "file:./records".to_owned(),
            Some(server) => server.url(if has_link { &through } else { &addresses }),
        };
        let upstream = FaultProxy::start(upstream).await?;
        let clock = if has_clock { Some(Clock::new(folder.path())?) } else { None };
        let mut environment = store.map(Server::environment).unwrap_or_default();
        environment.extend(clock.iter().flat_map(Clock::environment));
        let options = SidecarOptions {
            program: program.to_owned(),
            folder: folder.path().to_owned(),
            settings: settings(upstream.address(), &url),
            environment,
            starts_max: STARTS_MAX,
        };
        let slot = SidecarSlot::start(options).await?;
        Ok(Self { slot, store: links, upstream, clock, _folder: folder })
    }

    /// Injects a fault into one of its networks for a while.
    pub(super) async fn strike(&self, link: NetworkLink, fault: NetworkFault, span: Duration) -> Result<()> {
        let links = match link {
            NetworkLink::Upstream => std::slice::from_ref(&self.upstream),
            NetworkLink::Store => &self.store,
        };
        ensure!(!links.is_empty(), "there is no network to the store");
        links.iter().for_each(|link| link.strike(fault));
        sleep(span).await;
        links.iter().for_each(FaultProxy::heal);
        Ok(())
    }

    /// Moves its wall clock.
    pub(super) fn set_clock(&self, offset_s: i64) -> Result<()> {
        let clock = self.clock.as_ref().context("this sidecar has the system's clock")?;
        Ok(clock.set(offset_s)?)
    }
}

/// A wall clock with an offset.
struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    fn new(folder: &Path) -> Result<Self> {
        let machines = fs::read_dir(LIBRARY_ROOT)?.filter_map(Result::ok);
        let mut libraries = machines.map(|machine| machine.path().join(LIBRARY));
        let library = libraries
            .find(|library| library.is_file())
            .context("libfaketime is not there; install it: apt-get install -y faketime")?;
        let clock = Self { library, file: folder.join("clock") };
        clock.set(0)?;
        Ok(clock)
    }

    /// Replaces the file atomically: a reader sees the old offset or the new one.
    fn set(&self, offset_s: i64) -> io::Result<()> {
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{offset_s:+}\n"))?;
        fs::rename(next, &self.file)
    }

    fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("LD_PRELOAD", self.library.clone().into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone().into()),
            ("FAKETIME_NO_CACHE", "1".into()),
            // Wall clocks are stepped; the monotonic clock is not.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }
}

/// All timeouts are short, so that faults outlast them.
fn settings(upstream: SocketAddr, store: &str) -> String {
    let lease = LEASE.as_secs();
    format!(
        "upstream = \"http://{upstream}\"\n\
         [log]\nlevel = \"off\"\n\
         [store]\nurl = \"{store}\"\ntimeout = \"300ms\"\n\
         [defaults]\nkey = \"required\"\nlease = \"{lease}s\"\n\
         [upstream_options]\nconnect = \"300ms\"\nresponse = \"1s\"\nbody_idle = \"1s\"\n\
         [[route]]\npath = \"{WAIT}\"\nwait = \"2s\"\n"
    )
}

#[cfg(test)]
mod tests;
