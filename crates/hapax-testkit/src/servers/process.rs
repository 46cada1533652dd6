//! [`Running`]: a server's process, which can be killed and paused, and is killed on drop.

use std::process::Child;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

/// A process that may have ended.
#[derive(Debug)]
pub(super) struct Running(Mutex<Option<Child>>);

impl Running {
    pub(super) fn new(child: Child) -> Self {
        Self(Mutex::new(Some(child)))
    }

    /// Kills it with SIGKILL, as a crash would.
    pub(super) fn kill(&self) {
        if let Some(mut child) = self.0.lock().take() {
            child.kill().expect("the server can be killed");
            child.wait().expect("the server ends");
        }
    }

    /// Replaces the process that was killed.
    pub(super) fn replace(&self, child: Child) {
        *self.0.lock() = Some(child);
    }

    /// Stops it with SIGSTOP; its connections stay open.
    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues it with SIGCONT.
    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.0.lock();
        let id = child.as_ref().expect("the server runs").id();
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a child has a process id");
        kill_process(pid, signal).expect("the server can be signalled");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.lock().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
