//! One sidecar of several: its process, which may be another one from moment to moment, its networks and its clock.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::schedule::Link;
use super::server::Server;
use crate::fault_proxy::{FaultProxy, NetworkFault};
use crate::witness::process::Sidecar;
use crate::witness::upstream::WAIT;

/// How long a claim is believed. Short, so that many of them can be outlived.
pub(super) const LEASE: Duration = Duration::from_secs(1);

/// Where Debian keeps the library that moves a process's clock, for each kind of machine.
const LIBRARY_ROOT: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// How often a sidecar is started that ends at once, as whoever watches over one would. A store is given so little time
/// here that on a busy machine it is now and then not enough for the first connection.
const STARTS_MAX: usize = 10;

/// A place for a sidecar.
pub(super) struct Slot {
    program: PathBuf,
    folder: TempDir,
    /// One for each address of the store.
    store: Vec<FaultProxy>,
    upstream: FaultProxy,
    url: String,
    clock: Option<Clock>,
    /// What the store wants a sidecar to know.
    environment: Vec<(&'static str, OsString)>,
    /// None only while it is killed and started again.
    sidecar: Option<Sidecar>,
    place: Arc<watch::Sender<Option<SocketAddr>>>,
}

impl Slot {
    /// Starts the first sidecar here. `store` is the server that it shares with the others, or none where it has a
    /// store of its own.
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
        let clock = if has_clock { Some(Clock::new(folder.path())?) } else { None };
        let mut slot = Self {
            program: program.to_owned(),
            folder,
            store: links,
            upstream: FaultProxy::start(upstream).await?,
            url,
            clock,
            environment: store.map(Server::environment).unwrap_or_default(),
            sidecar: None,
            place: Arc::default(),
        };
        slot.revive().await?;
        Ok(slot)
    }

    /// Where it is, for callers.
    pub(super) fn place(&self) -> Arc<watch::Sender<Option<SocketAddr>>> {
        self.place.clone()
    }

    /// The process that is alive.
    pub(super) fn sidecar(&self) -> Result<&Sidecar> {
        self.sidecar.as_ref().context("the sidecar did not come back")
    }

    /// Kills it.
    pub(super) async fn kill(&mut self) -> Result<()> {
        self.place.send_replace(None);
        let sidecar = self.sidecar.take().context("the sidecar did not come back")?;
        spawn_blocking(move || sidecar.kill()).await?
    }

    /// Starts it, again or for the first time.
    pub(super) async fn revive(&mut self) -> Result<()> {
        let (program, folder) = (self.program.clone(), self.folder.path().to_owned());
        let settings = settings(self.upstream.address(), &self.url);
        let clock = self.clock.as_ref().map(Clock::environment).unwrap_or_default();
        let environment = [self.environment.clone(), clock].concat();
        let start = move || Sidecar::start_in(&program, &folder, &settings, &environment);
        let started = move || (1..STARTS_MAX).find_map(|_| start().ok()).map_or_else(&start, Ok);
        let sidecar = spawn_blocking(started).await??;
        self.place.send_replace(Some(sidecar.address));
        self.sidecar = Some(sidecar);
        Ok(())
    }

    /// Makes one of its networks bad for a while.
    pub(super) async fn strike(&self, link: Link, fault: NetworkFault, span: Duration) -> Result<()> {
        let links = match link {
            Link::Upstream => std::slice::from_ref(&self.upstream),
            Link::Store => &self.store,
        };
        ensure!(!links.is_empty(), "there is no network to the store");
        links.iter().for_each(|link| link.strike(fault));
        sleep(span).await;
        links.iter().for_each(FaultProxy::heal);
        Ok(())
    }

    /// Moves its wall clock.
    pub(super) fn set_clock(&self, offset_s: i64) -> Result<()> {
        let clock = self.clock.as_ref().context("this sidecar has no clock of its own")?;
        Ok(clock.set(offset_s)?)
    }
}

/// A wall clock that can be off.
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

    /// As a whole: whoever reads the file meanwhile sees the old offset or the new one.
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
            // Wall clocks are stepped; the time since the start of a machine is not.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }
}

/// Everything that a sidecar waits for is short, so that faults are outlived and not waited out.
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
