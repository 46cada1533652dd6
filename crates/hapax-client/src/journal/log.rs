//! [`Log`]: the file of the journal, with its lock. Appends, syncs, and rewrites it without the calls that have ended.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::JournalError;
use super::frame::{self, Event, FRAME_MAX};
use super::recover::{self, OpenCalls};
use super::stored::StoredCall;

/// The file.
const LOG: &str = "calls.log";
/// Its successor, until it is complete.
const NEW_LOG: &str = "calls.log.new";
/// The file that the owner keeps locked.
const LOCK: &str = "LOCK";
/// The start of the file; the seed of the checksums follows.
const MAGIC: [u8; 8] = *b"hapaxcj1";
const START: usize = MAGIC.len() + 4;

/// What to do where there is no journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IfMissing {
    Create,
    Refuse,
}

/// The open file.
#[derive(Debug)]
pub(super) struct Log {
    directory: PathBuf,
    file: Arc<File>,
    seed: u32,
    size: u64,
    /// The bytes that are on disk.
    synced_size: u64,
    /// Counts rewrites: a sync that was begun before one says nothing about the new file.
    generation: u64,
    is_stopped: bool,
    _lock: File,
}

/// A sync that is to be run without a lock on the log.
#[derive(Debug)]
pub(super) struct Sync {
    path: PathBuf,
    file: Arc<File>,
    size: u64,
    generation: u64,
}

impl Sync {
    pub(super) fn run(&self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|source| failed("sync", &self.path, source))
    }
}

impl Log {
    /// Locks the directory and reads the calls without an end. The log is rewritten when it has more than those.
    pub(super) fn open(directory: PathBuf, if_missing: IfMissing) -> Result<(Self, OpenCalls), JournalError> {
        if if_missing == IfMissing::Refuse && !directory.join(LOG).exists() {
            return Err(JournalError::Missing { directory });
        }
        create_private(&directory).map_err(|source| failed("create", &directory, source))?;
        let lock = lock(&directory)?;
        let path = directory.join(LOG);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(failed("read", &path, source)),
        };
        let seed = seed(&bytes).ok_or_else(|| JournalError::Foreign { path: path.clone() })?;
        let read = match seed {
            Some(seed) => recover::read(seed, &bytes, START)
                .map_err(|at| JournalError::Damaged { path: path.clone(), at })?,
            None => recover::Recovered { calls: OpenCalls::new(), is_clean: false },
        };
        let size = bytes.len() as u64;
        drop(bytes);
        let calls = || read.calls.iter().map(|(id, (call, is_uncertain))| (*id, call, *is_uncertain));
        let (file, seed, size) = match seed {
            Some(seed) if read.is_clean => {
                let file =
                    private().append(true).open(&path).map_err(|source| failed("open", &path, source))?;
                file.sync_data().map_err(|source| failed("sync", &path, source))?;
                (file, seed, size)
            }
            _ => {
                let new = write_new(&directory, calls())?;
                new.named?;
                (new.file, new.seed, new.size)
            }
        };
        let log = Self {
            directory,
            file: Arc::new(file),
            seed,
            size,
            synced_size: size,
            generation: 0,
            is_stopped: false,
            _lock: lock,
        };
        Ok((log, read.calls))
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Appends a frame. What a failed write leaves behind is cut off.
    pub(super) fn append(&mut self, event: &Event, body: &[u8]) -> Result<(), JournalError> {
        if self.is_stopped {
            return Err(JournalError::Stopped);
        }
        let frame = frame::encode(self.seed, self.synced_size, event, body);
        if frame.len() > FRAME_MAX {
            return Err(JournalError::TooLarge { size: frame.len() });
        }
        if let Err(source) = (&*self.file).write_all(&frame) {
            self.is_stopped = self.file.set_len(self.size).is_err();
            return Err(failed("write", &self.directory.join(LOG), source));
        }
        self.size += frame.len() as u64;
        Ok(())
    }

    /// A sync of all that was appended so far.
    pub(super) fn sync(&self) -> Result<Sync, JournalError> {
        if self.is_stopped {
            return Err(JournalError::Stopped);
        }
        let path = self.directory.join(LOG);
        Ok(Sync { path, file: Arc::clone(&self.file), size: self.size, generation: self.generation })
    }

    /// A sync has returned; says whether what it was to sync is on disk. After a failed one the kernel may have dropped the
    /// data, so nothing more is acknowledged, and the calls that waited for it are removed from the file.
    pub(super) fn synced(
        &mut self,
        sync: &Sync,
        result: Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        if self.is_stopped {
            return Err(JournalError::Stopped);
        }
        // The file was rewritten meanwhile, with what was to be synced, and synced as a whole.
        if sync.generation != self.generation {
            return Ok(());
        }
        if result.is_ok() {
            self.synced_size = self.synced_size.max(sync.size);
            return Ok(());
        }
        self.is_stopped = true;
        self.size = self.synced_size;
        if let Err(error) = self.file.set_len(self.size) {
            tracing::error!(%error, "calls that were not sent remain in the journal");
        }
        result
    }

    /// Replaces the file by one with these calls only.
    pub(super) fn rewrite<'a>(
        &mut self,
        calls: impl Iterator<Item = (u64, &'a StoredCall, bool)>,
    ) -> Result<(), JournalError> {
        if self.is_stopped {
            return Err(JournalError::Stopped);
        }
        let new = write_new(&self.directory, calls)?;
        self.replace(new)
    }

    /// Goes on with the new file, which has the name already. Where that name may be lost, nothing more is acknowledged.
    fn replace(&mut self, new: Written) -> Result<(), JournalError> {
        self.file = Arc::new(new.file);
        self.seed = new.seed;
        self.size = new.size;
        self.synced_size = new.size;
        self.generation += 1;
        self.is_stopped = new.named.is_err();
        new.named
    }
}

/// A new file in the place of the old one.
#[derive(Debug)]
struct Written {
    file: File,
    seed: u32,
    size: u64,
    /// Whether its name is on disk.
    named: Result<(), JournalError>,
}

/// The seed in the head of a file: `Some(None)` for one that was never completed, `None` for a file of another kind.
fn seed(bytes: &[u8]) -> Option<Option<u32>> {
    if bytes.len() < START {
        let is_begun = MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]);
        return is_begun.then_some(None);
    }
    let (seed, _) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
    Some(Some(u32::from_le_bytes(*seed)))
}

/// Writes a log with these calls, and puts it in the place of the old one.
fn write_new<'a>(
    directory: &Path,
    calls: impl Iterator<Item = (u64, &'a StoredCall, bool)>,
) -> Result<Written, JournalError> {
    let (path, new) = (directory.join(LOG), directory.join(NEW_LOG));
    let seed = getrandom::u32().map_err(|error| failed("seed", &new, io::Error::other(error)))?;
    let mut bytes = Vec::from(MAGIC);
    bytes.extend_from_slice(&seed.to_le_bytes());
    for (id, call, is_uncertain) in calls {
        let opened = Event::Opened { id, call: call.head() };
        bytes.extend(frame::encode(seed, 0, &opened, call.body()));
        if is_uncertain {
            bytes.extend(frame::encode(seed, 0, &Event::Uncertain { id }, &[]));
        }
    }
    let write = || -> io::Result<(File, Option<File>)> {
        // All that may be missing is opened before the rename: after it, appends to the old file would be lost.
        let names = if cfg!(unix) { Some(File::open(directory)?) } else { None };
        let mut file = private().append(true).create(true).open(&new)?;
        file.set_len(0)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        Ok((file, names))
    };
    let (file, names) = write().map_err(|source| failed("write", &new, source))?;
    // The new name is on disk when its directory is.
    let named = names.map_or(Ok(()), |names| names.sync_all());
    let named = named.map_err(|source| failed("sync", directory, source));
    Ok(Written { file, seed, size: bytes.len() as u64, named })
}

fn lock(directory: &Path) -> Result<File, JournalError> {
    let path = directory.join(LOCK);
    let file = private().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|source| failed("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse { directory: directory.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock", &path, source)),
    }
}

/// Options of files that only their owner reads.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn create_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn failed(operation: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { operation, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
