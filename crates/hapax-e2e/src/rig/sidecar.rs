//! [`Sidecar`]: one run of `hapax serve`. [`SidecarSlot`]: runs that follow each other on one folder.

use std::ffi::OsString;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::child::ChildProcess;

/// The admin API's token.
pub(crate) const TOKEN: &str = "a-token-for-the-proof-alone";

/// The `hapax` that was built into the same folder as this program, or into the one above for a test.
///
/// # Errors
/// When it is not there.
pub fn program_beside() -> Result<PathBuf> {
    let own = env::current_exe().context("failed to find this program's own file")?;
    let folders = own.ancestors().skip(1).take(2);
    let mut programs = folders.map(|folder| folder.join("hapax"));
    let found = programs.find(|program| program.is_file());
    found.context("there is no `hapax` beside this program; build it with `cargo build -p hapax-cli`")
}

/// A running sidecar. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Sidecar {
    process: ChildProcess,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Sidecar {
    /// Starts `program` on the store in `folder`, with `settings` as its configuration file and at ports of the system's
    /// choice, and waits until it listens.
    pub(crate) fn start(program: &Path, folder: &Path, settings: &str) -> Result<Self> {
        Self::start_in(program, folder, settings, &[])
    }

    /// The same, with more in its environment.
    pub(crate) fn start_in(
        program: &Path,
        folder: &Path,
        settings: &str,
        environment: &[(&str, OsString)],
    ) -> Result<Self> {
        let config = folder.join("hapax.toml");
        fs::write(&config, settings)?;
        let mut command = Command::new(program);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HAPAX_")) {
            command.env_remove(name);
        }
        command
            .args(["serve", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config"])
            .arg(&config)
            .current_dir(folder)
            .env("HAPAX_ADMIN_TOKEN", TOKEN)
            .envs(environment.iter().map(|(name, value)| (name, value)));
        let mut process = ChildProcess::spawn(&mut command)?;
        let output = BufReader::new(process.stdout()?);
        let mut documents = serde_json::Deserializer::from_reader(output).into_iter::<Value>();
        let Some(Ok(start)) = documents.next() else {
            bail!("the sidecar did not start: {}", process.kill()?);
        };
        Ok(Self { process, address: address(&start["listen"])?, admin: address(&start["console"])? })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Stops it with SIGSTOP; its connections stay open.
    pub(crate) fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Continues it.
    pub(crate) fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        kill_process(id, signal).context("the sidecar cannot be signalled")
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub(crate) fn kill(mut self) -> Result<()> {
        ensure!(self.process.is_running()?, "the sidecar ended before it was killed");
        self.process.kill().map(drop)
    }
}

fn address(url: &Value) -> Result<SocketAddr> {
    let url = url.as_str().context("the sidecar does not report its address")?;
    Ok(url.trim_start_matches("http://").trim_end_matches('/').parse()?)
}

/// The address of a sidecar; none while it is dead.
pub(crate) type SidecarAddress = watch::Receiver<Option<SocketAddr>>;

/// How the sidecars of a slot are started.
#[derive(Clone, Debug)]
pub(crate) struct SidecarOptions {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    /// The configuration file.
    pub(crate) settings: String,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// How often a start that fails is tried, as a supervisor would.
    pub(crate) starts_max: usize,
}

/// A sidecar that is killed and started again on the same folder.
#[derive(Debug)]
pub(crate) struct SidecarSlot {
    options: SidecarOptions,
    /// None only between a kill and the next start.
    running: Option<Sidecar>,
    address: watch::Sender<Option<SocketAddr>>,
}

impl SidecarSlot {
    pub(crate) async fn start(options: SidecarOptions) -> Result<Self> {
        let mut slot = Self { options, running: None, address: watch::Sender::new(None) };
        slot.restart().await?;
        Ok(slot)
    }

    /// Where callers find it.
    pub(crate) fn address(&self) -> SidecarAddress {
        self.address.subscribe()
    }

    /// The run that is alive.
    pub(crate) fn sidecar(&self) -> Result<&Sidecar> {
        self.running.as_ref().context("the sidecar did not come back")
    }

    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.address.send_replace(None);
        let sidecar = self.running.take().context("the sidecar did not come back")?;
        spawn_blocking(move || sidecar.kill()).await?
    }

    /// Starts the next run.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        let options = self.options.clone();
        let start = move || {
            let SidecarOptions { program, folder, settings, environment, starts_max } = &options;
            let start = || Sidecar::start_in(program, folder, settings, environment);
            (1..*starts_max).find_map(|_| start().ok()).map_or_else(start, Ok)
        };
        let sidecar = spawn_blocking(start).await??;
        self.address.send_replace(Some(sidecar.address));
        self.running = Some(sidecar);
        Ok(())
    }
}
