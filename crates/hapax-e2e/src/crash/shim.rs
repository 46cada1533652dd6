//! Builds the failing disk (`shim/disk.c`) and puts it under a child process.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

const SOURCE: &str = include_str!("../../shim/disk.c");

/// The compiled library.
#[derive(Clone, Debug)]
pub struct Shim {
    library: PathBuf,
}

/// What the disk does to one child process; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Kill the process in one of its calls.
    pub kill: Option<KillAt>,
    /// Fail the sync with this number, counted from one.
    pub eio_at: Option<u64>,
    /// Answer writes with "no space left" while this file exists.
    pub full_while: Option<PathBuf>,
    /// Write down what reached the disk, in order.
    pub journal: Option<PathBuf>,
}

/// In which of its changing calls a process dies, and where in it.
#[derive(Clone, Copy, Debug)]
pub struct KillAt {
    /// The number of the call, counted from one.
    pub call: u64,
    /// Where in the call.
    pub point: Point,
}

/// Where in a call a process dies.
#[derive(Clone, Copy, Debug)]
pub enum Point {
    /// Nothing of it has happened.
    Before,
    /// Half of a write has happened; other calls have not.
    Torn,
    /// It has happened, and nobody was told.
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

    /// Puts the disk under `command` for everything below `watched`, which must be a canonical path.
    pub fn arm(&self, command: &mut Command, watched: &Path, faults: &Faults) {
        command.env("LD_PRELOAD", &self.library).env("HAPAX_DISK_DIR", watched);
        if let Some(KillAt { call, point }) = faults.kill {
            let point = match point {
                Point::Before => "before",
                Point::Torn => "torn",
                Point::After => "after",
            };
            command.env("HAPAX_DISK_KILL_AT", call.to_string()).env("HAPAX_DISK_KILL_HOW", point);
        }
        if let Some(sync) = faults.eio_at {
            command.env("HAPAX_DISK_EIO_AT", sync.to_string());
        }
        if let Some(path) = &faults.full_while {
            command.env("HAPAX_DISK_FULL", path);
        }
        if let Some(path) = &faults.journal {
            command.env("HAPAX_DISK_JOURNAL", path);
        }
    }
}
