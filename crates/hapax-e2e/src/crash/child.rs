//! One child process from its start to its death, with everything it said.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::note::Note;
use super::shim::{Faults, Shim};
use super::workload::Workload;

/// The argument that makes the program the child of a round instead of the proof.
pub const CHILD_ARGUMENT: &str = "child";

/// How long a child may take to open its store before the round counts as broken.
const START_MAX: Duration = Duration::from_secs(60);

const SIGKILL: i32 = 9;

/// How a child ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was killed, by its parent or in a call to the disk.
    Killed,
    /// It gave up: the store did not open, or something panicked. Its error output says what.
    ByItself,
}

/// A running child process. Dropping it kills it.
#[derive(Debug)]
pub struct Child {
    process: Process,
    lines: Receiver<String>,
}

impl Child {
    /// Starts `program` with the failing disk under everything in the workload's directory.
    pub fn start(program: &Path, shim: &Shim, workload: &Workload, faults: &Faults) -> Result<Self> {
        let dir: PathBuf = workload.dir.canonicalize()?;
        let mut command = Command::new(program);
        command
            .args([CHILD_ARGUMENT, "--engine", &workload.engine.to_string()])
            .args(["--first-key", &workload.first_key.to_string()])
            .args(["--tasks", &workload.tasks.to_string()])
            .arg("--dir")
            .arg(&dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        shim.arm(&mut command, &dir, faults);
        let mut process = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let output = process.stdout.take().context("the child's output is a pipe")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // Ends with the pipe, and so with the process.
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, lines })
    }

    /// The next thing it says; none when it is dead, or has not said anything by `deadline`.
    pub fn next(&self, deadline: Instant) -> Result<Option<Note>> {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line.parse()?)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    /// Everything it says until `enough`, its death or `deadline`.
    pub fn notes_until(&self, deadline: Instant, mut enough: impl FnMut(&Note) -> bool) -> Result<Vec<Note>> {
        let mut notes = Vec::new();
        while let Some(note) = self.next(deadline)? {
            let stop = enough(&note);
            notes.push(note);
            if stop {
                break;
            }
        }
        Ok(notes)
    }

    /// Everything it says until the store is open, or until it died on the way there.
    pub fn notes_until_ready(&self) -> Result<Vec<Note>> {
        self.notes_until(Instant::now() + START_MAX, |note| *note == Note::Ready)
    }

    /// Kills it, if it is not dead yet, and gives what it still said and how it died.
    pub fn kill(mut self) -> Result<(Vec<Note>, End)> {
        self.process.kill()?;
        let rest = self.lines.iter().map(|line| line.parse()).collect::<Result<_>>()?;
        let status = self.process.wait()?;
        let end = if status.signal() == Some(SIGKILL) { End::Killed } else { End::ByItself };
        Ok((rest, end))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only when it is dead and gone, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
