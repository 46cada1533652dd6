//! One run of the sidecar, from its start to its death.

use std::ffi::OsString;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The admin API's token.
pub(crate) const TOKEN: &str = "a-token-for-the-proof-alone";

/// The `hapax` that was built into the same folder as this program, or into the one above for a test.
///
/// # Errors
/// When it is not there.
pub fn beside() -> Result<PathBuf> {
    let own = env::current_exe().context("failed to find this program's own file")?;
    let folders = own.ancestors().skip(1).take(2);
    let mut programs = folders.map(|folder| folder.join("hapax"));
    let found = programs.find(|program| program.is_file());
    found.context("there is no `hapax` beside this program; build it with `cargo build -p hapax-cli`")
}

/// A running sidecar. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Sidecar {
    process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Sidecar {
    /// Starts `program` on the store in `folder`, with `settings` for its file and at ports of the system's choice, and
    /// waits until it listens.
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
        let mut process = command
            .args(["serve", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config"])
            .arg(&config)
            .current_dir(folder)
            .env("HAPAX_ADMIN_TOKEN", TOKEN)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let told = process.stdout.take().context("the sidecar's output is a pipe")?;
        let mut documents = serde_json::Deserializer::from_reader(BufReader::new(told)).into_iter::<Value>();
        let Some(Ok(start)) = documents.next() else {
            // It is not a `Sidecar` yet that would be killed by itself.
            let _ = process.kill();
            bail!("the sidecar did not start: {}", process.wait()?);
        };
        Ok(Self { process, address: address(&start["listen"])?, admin: address(&start["console"])? })
    }

    /// Its number to the kernel.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Stops it where it stands, with SIGSTOP; its connections stay open.
    pub(crate) fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw).context("a process has a number")?;
        kill_process(id, signal).context("the sidecar cannot be signalled")
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub(crate) fn kill(mut self) -> Result<()> {
        ensure!(self.process.try_wait()?.is_none(), "the sidecar ended by itself");
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        // Both fail only when it is dead and gone, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn address(url: &Value) -> Result<SocketAddr> {
    let url = url.as_str().context("the sidecar does not say where it is")?;
    Ok(url.trim_start_matches("http://").trim_end_matches('/').parse()?)
}
