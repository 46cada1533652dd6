//! [`Shim`]: builds the failing disk (`shim/disk.c`) and preloads it into a child process.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

const SOURCE: &str = include_str!("../../shim/disk.c");

/// The compiled library.
#[derive(Clone, Debug)]
pub struct Shim {
    library: PathBuf,
}

/// The disk faults of one child process; none by default.
#[derive(Clone, Debug, Default)]
pub struct DiskFaults {
    /// Kills the process in one of its calls.
    pub kill: Option<KillAt>,
    /// Fails the sync with this number, counted from one.
    pub eio_at: Option<u64>,
    /// Fails writes with ENOSPC while this file exists.
    pub full_while: Option<PathBuf>,
    /// Writes every change of the disk to this file, in order.
    pub trace: Option<PathBuf>,
}

/// The disk call in which a process is killed.
#[derive(Clone, Copy, Debug)]
pub struct KillAt {
    /// The number of the call among those that change the disk, counted from one.
    pub call: u64,
    /// Where in the call.
    pub point: CallPoint,
}

/// Where in a call a process is killed.
#[derive(Clone, Copy, Debug)]
pub enum CallPoint {
    /// Before any effect.
    Before,
    /// After half of a write; before any effect of other calls.
    Torn,
    /// After its effect, before it returns.
    After,
}

impl Shim {
    /// Compiles the library into `dir`.
    pub fn build(dir: &Path) -> Result<Self> {
        let source = dir.join("disk.c");
        let library = dir.join("disk.so");
        std::fs::write(&source, SOURCE)?;
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-pthread", "-o"])
            .arg(&library)
            .arg(&source)
            .output()
            .context("no C compiler `cc`; install one: apt-get install -y gcc libc6-dev")?;
        ensure!(
            compiled.status.success(),
            "the failing disk does not compile:\n{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        Ok(Self { library })
    }

    /// Preloads the library into `command` for everything below `watched`, which must be a canonical path.
    pub fn arm(&self, command: &mut Command, watched: &Path, faults: &DiskFaults) {
        command.env("LD_PRELOAD", &self.library).env("HAPAX_DISK_DIR", watched);
        if let Some(KillAt { call, point }) = faults.kill {
            let point = match point {
                CallPoint::Before => "before",
                CallPoint::Torn => "torn",
                CallPoint::After => "after",
            };
            command.env("HAPAX_DISK_KILL_AT", call.to_string()).env("HAPAX_DISK_KILL_HOW", point);
        }
        if let Some(sync) = faults.eio_at {
            command.env("HAPAX_DISK_EIO_AT", sync.to_string());
        }
        if let Some(path) = &faults.full_while {
            command.env("HAPAX_DISK_FULL", path);
        }
        if let Some(path) = &faults.trace {
            command.env("HAPAX_DISK_TRACE", path);
        }
    }
}
