//! [`ChildProcess`]: a child process that is killed on drop.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;

use anyhow::{Context as _, Result};

/// The argument that makes a rig's program the child process of the rig.
pub(crate) const CHILD_ARGUMENT: &str = "child";

/// A child process that is killed on drop.
#[derive(Debug)]
pub(crate) struct ChildProcess(Child);

impl ChildProcess {
    /// Starts it with a pipe as its standard output.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        Ok(Self(
            spawned
                .with_context(|| format!("cannot start {}", Path::new(command.get_program()).display()))?,
        ))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// The pipe. It can be taken once.
    pub(crate) fn stdout(&mut self) -> Result<ChildStdout> {
        self.0.stdout.take().context("the child's output is a pipe")
    }

    /// Sends every line of its output, on a thread that ends with the pipe and so with the process.
    pub(crate) fn send_lines(&mut self, lines: Sender<String>) -> Result<()> {
        let output = BufReader::new(self.stdout()?);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }

    /// Kills it with SIGKILL, if it has not ended, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Result<ExitStatus> {
        self.0.kill()?;
        self.wait()
    }

    /// Waits until it ends.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        Ok(self.0.wait()?)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
