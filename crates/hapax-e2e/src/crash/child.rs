//! [`CrashChild`]: a child process with a [`Workload`], and the events that it prints.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::event::ChildEvent;
use super::shim::{DiskFaults, Shim};
use super::workload::Workload;
use crate::rig::child::{CHILD_ARGUMENT, ChildProcess};

/// How long a child may take to open its store before the round counts as broken.
const START_MAX: Duration = Duration::from_secs(60);

const SIGKILL: i32 = 9;

/// How a child ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildEnd {
    /// It was killed, by its parent or in a disk call.
    Killed,
    /// It exited: the store did not open, or it panicked. Its error output says why.
    Exited,
}

/// A running child process. Dropping it kills it.
#[derive(Debug)]
pub struct CrashChild {
    process: ChildProcess,
    lines: Receiver<String>,
}

impl CrashChild {
    /// Starts `program` with the failing disk below everything in the workload's directory.
    pub fn start(program: &Path, shim: &Shim, workload: &Workload, faults: &DiskFaults) -> Result<Self> {
        let dir = workload.dir.canonicalize()?;
        let mut command = Command::new(program);
        command
            .args([CHILD_ARGUMENT, "--engine", &workload.engine.to_string()])
            .args(["--first-key", &workload.first_key.to_string()])
            .args(["--tasks", &workload.tasks.to_string()])
            .arg("--dir")
            .arg(&dir);
        shim.arm(&mut command, &dir, faults);
        let mut process = ChildProcess::spawn(&mut command)?;
        let (sender, lines) = channel();
        process.send_lines(sender)?;
        Ok(Self { process, lines })
    }

    /// The next event; none when it has ended, or has printed nothing by `deadline`.
    pub fn next(&self, deadline: Instant) -> Result<Option<ChildEvent>> {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line.parse()?)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    /// The events until `enough`, its end or `deadline`.
    pub fn events_until(
        &self,
        deadline: Instant,
        mut enough: impl FnMut(&ChildEvent) -> bool,
    ) -> Result<Vec<ChildEvent>> {
        let mut events = Vec::new();
        while let Some(event) = self.next(deadline)? {
            let stop = enough(&event);
            events.push(event);
            if stop {
                break;
            }
        }
        Ok(events)
    }

    /// The events until the store is open, or until the child has ended.
    pub fn events_until_ready(&self) -> Result<Vec<ChildEvent>> {
        self.events_until(Instant::now() + START_MAX, |event| *event == ChildEvent::Ready)
    }

    /// Kills it, if it has not ended. Returns its last events and how it ended.
    pub fn kill(mut self) -> Result<(Vec<ChildEvent>, ChildEnd)> {
        let status = self.process.kill()?;
        let rest = self.lines.iter().map(|line| line.parse()).collect::<Result<_>>()?;
        let end = if status.signal() == Some(SIGKILL) { ChildEnd::Killed } else { ChildEnd::Exited };
        Ok((rest, end))
    }
}
