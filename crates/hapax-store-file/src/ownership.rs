//! [`Ownership`]: the lock on a store's directory. [`OpenedFiles`]: whether the opened files are still in their places.
//!
//! The lock is held on the directory itself, which is not deleted without the store in it. A file `LOCK` names the
//! process for people; earlier versions lock that file, so it is locked too.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::directory::private_file;
use crate::error::OpenError;

/// Names the process that owns the store.
pub(crate) const LOCK: &str = "LOCK";
/// Tries to take the lock, and the pause between them: half a second in all.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// The lock on a store's directory; released when dropped.
#[derive(Debug)]
pub(crate) struct Ownership {
    _directory: Option<File>,
    /// The file `LOCK`, once it names this process.
    lock: Option<File>,
}

impl Ownership {
    /// Takes the lock on the directory at `path`, unless another process keeps it.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
        if !cfg!(unix) {
            return Ok(Self { _directory: None, lock: None });
        }
        let directory = File::open(path).map_err(|source| inaccessible(path, source))?;
        lock(&directory, path, path)?;
        Ok(Self { _directory: Some(directory), lock: None })
    }

    /// Writes the process id to the file `LOCK`.
    pub(crate) fn write_pid(&mut self, directory: &Path) -> Result<(), OpenError> {
        let path = directory.join(LOCK);
        let failed = |source| inaccessible(&path, source);
        let mut file = private_file().create(true).truncate(false).open(&path).map_err(failed)?;
        lock(&file, &path, directory)?;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed)?;
        self.lock = Some(file);
        Ok(())
    }
}

/// Whether a process owns the store in `directory`.
pub(crate) fn is_owned(directory: &Path) -> bool {
    let held = |path: &Path| {
        let file = File::open(path).ok()?;
        Some(matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    };
    (cfg!(unix) && held(directory).unwrap_or(false)) || held(&directory.join(LOCK)).unwrap_or(false)
}

/// Takes the lock, unless another process keeps it.
///
/// A child that the last owner has just forked holds its open files, and with them the lock, until it calls `exec`. The retries
/// outlast that.
fn lock(file: &File, path: &Path, directory: &Path) -> Result<(), OpenError> {
    for tried in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if tried < LOCK_TRIES => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse { path: directory.to_owned(), pid: owner(directory) });
            }
            Err(TryLockError::Error(source)) => return Err(inaccessible(path, source)),
        }
    }
    Ok(())
}

/// The process id in the file `LOCK`, if there is one.
fn owner(directory: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(directory.join(LOCK)).ok()?.read_to_string(&mut text).ok()?;
    text.lines().next()?.trim().parse().ok()
}

/// The files of an open store. If one of them is replaced, writes do not reach the file that the next process opens, so
/// nothing may be acknowledged.
#[derive(Debug, Default)]
pub(crate) struct OpenedFiles {
    files: Vec<(PathBuf, FileIdentity)>,
}

impl OpenedFiles {
    /// The files at these paths.
    pub(crate) fn of(paths: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let files = paths.into_iter().map(|path| {
            let found = FileIdentity::at(&path)?;
            Ok((path, found))
        });
        Ok(Self { files: files.collect::<io::Result<_>>()? })
    }

    /// The first file that was removed or replaced.
    pub(crate) fn replaced(&self) -> Option<&Path> {
        let is_replaced = |(path, opened): &&(PathBuf, FileIdentity)| {
            !FileIdentity::at(path).is_ok_and(|found| found == *opened)
        };
        self.files.iter().find(is_replaced).map(|(path, _)| path.as_path())
    }
}

/// Identifies a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileIdentity {
    device: u64,
    number: u64,
}

impl FileIdentity {
    /// Never opens the file: on Unix closing any handle of it would release SQLite's locks.
    #[cfg(unix)]
    fn at(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(path)?;
        Ok(Self { device: found.dev(), number: found.ino() })
    }

    /// An open file can be neither deleted nor replaced here.
    #[cfg(not(unix))]
    fn at(path: &Path) -> io::Result<Self> {
        fs::metadata(path)?;
        Ok(Self { device: 0, number: 0 })
    }
}

fn inaccessible(path: &Path, source: io::Error) -> OpenError {
    OpenError::Inaccessible { path: path.to_owned(), source }
}
