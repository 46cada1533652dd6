//! [`Log`]: the file of the journal, with its lock. Appends, syncs, and rewrites it without the calls that have ended.

mod files;
mod head;
mod written;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use self::files::{create_private, failed, lock};
use self::head::Head;
use self::written::{Written, open_clean, write_new};
use super::JournalError;
use super::frame::{self, Event, FRAME_MAX};
use super::recover::{self, OpenCalls};
use super::stored::StoredCall;

/// The file.
const LOG: &str = "calls.log";
/// Its successor, until it is complete.
const NEW_LOG: &str = "calls.log.new";

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
    /// The same file, not opened for appending: its head is overwritten.
    head_file: Arc<File>,
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
    head_file: Arc<File>,
    /// The head of the file once the sync has returned.
    head: Head,
    generation: u64,
}

impl Sync {
    /// Syncs, and then notes in the head how much was synced. The note itself is on disk with the next sync, since a call
    /// costs one: where the machine loses its power in between, damage of the last call looks like a torn write.
    pub(super) fn run(&self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|source| failed("sync", &self.path, source))?;
        if let Err(error) = self.head.write(&self.head_file) {
            tracing::warn!(%error, "the journal has no note of its last sync");
        }
        Ok(())
    }
}

impl Log {
    /// Locks the directory and reads the calls without an end. The log is rewritten when it has more than those.
    pub(super) fn open(directory: PathBuf, if_missing: IfMissing) -> Result<(Self, OpenCalls), JournalError> {
        if if_missing == IfMissing::Refuse && !directory.join(LOG).exists() {
            return Err(JournalError::Missing { directory });
        }
        create_private(&directory)?;
        let lock = lock(&directory)?;
        let path = directory.join(LOG);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(failed("read", &path, source)),
        };
        let head = Head::read(&bytes, &path)?;
        let read = match head {
            Some(head) => recover::read(head.seed, &bytes, head::LENGTH, head.synced)
                .map_err(|at| JournalError::Damaged { path: path.clone(), at })?,
            None => recover::Recovered { calls: OpenCalls::new(), is_clean: false },
        };
        let size = bytes.len() as u64;
        drop(bytes);
        let calls = || read.calls.iter().map(|(id, call)| (*id, &call.stored, call.is_uncertain));
        let opened = match head {
            Some(head) if read.is_clean => open_clean(&path, head.seed, size)?,
            _ => write_new(&directory, calls())?,
        };
        opened.named?;
        let log = Self {
            directory,
            file: Arc::new(opened.file),
            head_file: Arc::new(opened.head_file),
            seed: opened.seed,
            size: opened.size,
            synced_size: opened.size,
            generation: 0,
            is_stopped: false,
            _lock: lock,
        };
        Ok((log, read.calls))
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Appends a frame, and returns its size. What a failed write leaves behind is cut off.
    pub(super) fn append(&mut self, event: &Event, body: &[u8]) -> Result<u64, JournalError> {
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
        let size = frame.len() as u64;
        self.size += size;
        Ok(size)
    }

    /// A sync of all that was appended so far.
    pub(super) fn sync(&self) -> Result<Sync, JournalError> {
        if self.is_stopped {
            return Err(JournalError::Stopped);
        }
        let path = self.directory.join(LOG);
        let (file, head_file) = (Arc::clone(&self.file), Arc::clone(&self.head_file));
        let head = Head { seed: self.seed, synced: self.size };
        Ok(Sync { path, file, head_file, head, generation: self.generation })
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
            self.synced_size = self.synced_size.max(sync.head.synced);
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
        self.head_file = Arc::new(new.head_file);
        self.seed = new.seed;
        self.size = new.size;
        self.synced_size = new.size;
        self.generation += 1;
        self.is_stopped = new.named.is_err();
        new.named
    }
}

#[cfg(test)]
mod tests;
