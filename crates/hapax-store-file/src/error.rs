//! Errors, and what they mean for callers: driver error -> [`StoreErrorKind`], in one place.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hapax_core::{StoreError, StoreErrorKind};
use rusqlite::{ErrorCode, ffi};
use thiserror::Error;

use crate::schema;

/// Why a directory could not be opened as a store; the source of the [`StoreError`] that
/// [`FileStore::open`](crate::FileStore::open) returns. Each message says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The path is not a directory.
    #[error("{path} is not a directory; name a directory, or one that may be created")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory or a file in it cannot be created, read or written.
    #[error(
        "{path} cannot be used; check that it exists, that this user may read and write it and that the file system is \
         not read-only"
    )]
    Inaccessible {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The directory is on a network file system.
    #[error(
        "{path} lies on {file_system}, a network file system with unreliable locks and syncs; use a local disk, or a store \
         with a server"
    )]
    Network {
        /// The path.
        path: PathBuf,
        /// The file system.
        file_system: &'static str,
    },
    /// Every user of the machine may write to the directory, and could replace files of the store.
    #[error(
        "every user of this machine may write to {path}; remove that permission (chmod o-w), or name a directory in it, \
         which is then created for this user only"
    )]
    WritableByAll {
        /// The path.
        path: PathBuf,
    },
    /// A file of the store is a symbolic link.
    #[error("{path} is a symbolic link; put the file itself there, or name the directory that it is in")]
    SymbolicLink {
        /// The path.
        path: PathBuf,
    },
    /// Another process owns the store.
    #[error(
        "{path} is in use by {}; stop that process, or open the store read-only",
        process(*pid)
    )]
    InUse {
        /// The path.
        path: PathBuf,
        /// Its process id, if known.
        pid: Option<u32>,
    },
    /// A reader of the database keeps SQLite's log of an earlier process from being checkpointed.
    #[error(
        "a long read transaction on {path}, such as that of a database shell or a backup, keeps its log from being \
         emptied; end it, and open the store again"
    )]
    LogHeld {
        /// The path.
        path: PathBuf,
    },
    /// The disk has no room to recover the store from an earlier process.
    #[error(
        "the disk has no room to recover {path}: to make open claims of an earlier process uncertain, and to complete the \
         index; free some space, and open the store again"
    )]
    Full {
        /// The path.
        path: PathBuf,
    },
    /// There is no store to read.
    #[error("there is no store in {path}; check the path, or open it for writing")]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file is not the database of a store.
    #[error(
        "{path} is not the database of a store, or its header is damaged; choose another directory, or restore a good copy"
    )]
    Foreign {
        /// The path.
        path: PathBuf,
    },
    /// The database or its write-ahead log is damaged, or the two are from different times.
    #[error(
        "{path} is damaged, and operations in it could run again ({found}); restore a good copy of all files, or rebuild its \
         index if nothing else is damaged"
    )]
    Damaged {
        /// The path.
        path: PathBuf,
        /// The first finding.
        found: String,
    },
    /// The database is missing while other files of the store exist.
    #[error(
        "{path} is missing while other files of the store exist; restore the database, or remove these files too if all \
         records may be lost"
    )]
    Incomplete {
        /// The path of the database.
        path: PathBuf,
    },
    /// The store has a layout version that this version does not read.
    #[error(
        "{path} has layout version {found} and this program knows version {}; use the program that wrote it, or a newer one",
        schema::VERSION
    )]
    Version {
        /// The path.
        path: PathBuf,
        /// Its layout version.
        found: u32,
    },
    /// SQLite cannot open the file.
    #[error(
        "SQLite cannot open {path}; if it is damaged restore a good copy, and do not delete it unless all records may be lost"
    )]
    Engine {
        /// The path.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
}

impl OpenError {
    fn kind(&self) -> StoreErrorKind {
        match self {
            Self::NotADirectory { .. }
            | Self::Inaccessible { .. }
            | Self::Network { .. }
            | Self::WritableByAll { .. }
            | Self::SymbolicLink { .. }
            | Self::Missing { .. } => StoreErrorKind::Unavailable,
            Self::InUse { .. } | Self::LogHeld { .. } => StoreErrorKind::InUse,
            Self::Full { .. } => StoreErrorKind::Full,
            Self::Foreign { .. } | Self::Damaged { .. } | Self::Incomplete { .. } | Self::Version { .. } => {
                StoreErrorKind::Incompatible
            }
            Self::Engine { source, .. } => match Cause::of(source) {
                Cause::Corrupt | Cause::Other => StoreErrorKind::Incompatible,
                Cause::Full => StoreErrorKind::Full,
                Cause::Busy => StoreErrorKind::InUse,
                Cause::TooLarge | Cause::Io | Cause::SharedMemory => StoreErrorKind::Unavailable,
            },
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::new(error.kind(), "open").with_source(error)
    }
}

/// The owner of a store, in words.
fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// The class of a driver error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// No room, in the file or on the disk. Stored data is intact.
    Full,
    /// Another process, such as a database shell, holds SQLite's lock.
    Busy,
    /// A value above SQLite's limits.
    TooLarge,
    /// Damaged pages.
    Corrupt,
    /// The shared memory file of SQLite's log could not grow or be locked; the log itself was written.
    SharedMemory,
    /// The operating system failed to read, write or sync. The content of the disk is unknown after that.
    Io,
    /// Any other error; none is expected.
    Other,
}

impl Cause {
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        let rusqlite::Error::SqliteFailure(error, _) = error else {
            return Self::Other;
        };
        match error.code {
            ErrorCode::DiskFull => Self::Full,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy,
            ErrorCode::TooBig => Self::TooLarge,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Corrupt,
            ErrorCode::SystemIoFailure => match error.extended_code {
                ffi::SQLITE_IOERR_SHMOPEN
                | ffi::SQLITE_IOERR_SHMSIZE
                | ffi::SQLITE_IOERR_SHMLOCK
                | ffi::SQLITE_IOERR_SHMMAP => Self::SharedMemory,
                _ => Self::Io,
            },
            ErrorCode::CannotOpen => Self::Io,
            _ => Self::Other,
        }
    }

    /// The kind for a read, which changes nothing.
    pub(crate) fn of_read(self) -> StoreErrorKind {
        match self {
            Self::Corrupt | Self::Other => StoreErrorKind::Incompatible,
            _ => StoreErrorKind::Unavailable,
        }
    }
}

/// The phase in which a transaction failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum Phase {
    /// While it checked that the opened files are still in their places.
    #[error("check the opened files")]
    CheckFiles,
    /// Before it began.
    #[error("begin a transaction")]
    Begin,
    /// While it read and wrote; none of it can have reached the database.
    #[error("read or write in a transaction")]
    Work,
    /// While it wrote and synced the write-ahead log.
    #[error("write to the write-ahead log")]
    Wal,
    /// While it committed.
    #[error("commit a transaction")]
    Commit,
}

/// A transaction that failed.
#[derive(Clone, Debug, Error)]
#[error("{phase}: {source}")]
pub(crate) struct Failure {
    phase: Phase,
    // Shared by all callers of the batch.
    source: Arc<rusqlite::Error>,
}

/// The meaning of a failure for its callers and for the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FailureClass {
    /// The error of the callers.
    pub(crate) kind: StoreErrorKind,
    /// Whether the store must stop, because later syncs prove nothing.
    pub(crate) fatal: bool,
    /// Whether other operations of the batch may succeed without the failing one.
    pub(crate) separable: bool,
}

impl Failure {
    pub(crate) fn at(phase: Phase) -> impl Fn(rusqlite::Error) -> Self {
        move |source| Self { phase, source: Arc::new(source) }
    }

    /// A file of the open store was removed or replaced.
    pub(crate) fn replaced(path: &Path) -> Self {
        let why = format!("{} was removed or replaced", path.display());
        let code = ffi::Error::new(ffi::SQLITE_IOERR);
        Self::at(Phase::CheckFiles)(rusqlite::Error::SqliteFailure(code, Some(why)))
    }

    pub(crate) fn error(&self, op: &'static str) -> StoreError {
        StoreError::new(self.classify().kind, op).with_source(self.clone())
    }

    pub(crate) fn classify(&self) -> FailureClass {
        use StoreErrorKind::{Full, Incompatible, Stopped, TooLarge, Unavailable, Unknown};
        let (kind, fatal, separable) = match (self.phase, Cause::of(&self.source)) {
            (_, Cause::Busy) => (Unavailable, false, false),
            // Nothing of the batch was written, and no part of it would fit either.
            (Phase::Wal, Cause::Full) => (Full, false, false),
            (_, Cause::Full) => (Full, false, true),
            (_, Cause::TooLarge) => (TooLarge, false, true),
            // SQLite refuses to commit after it has read a damaged page, and has written nothing.
            (Phase::CheckFiles | Phase::Begin | Phase::Work | Phase::Commit, Cause::Corrupt) => {
                (Incompatible, false, true)
            }
            (Phase::CheckFiles | Phase::Begin | Phase::Work, Cause::SharedMemory) => {
                (Unavailable, false, false)
            }
            (Phase::CheckFiles | Phase::Begin | Phase::Work, Cause::Io) => (Stopped, true, false),
            (Phase::CheckFiles | Phase::Begin | Phase::Work, Cause::Other) => (Unavailable, false, true),
            // SQLite's log may have the commit although this process does not see it. The commit ends the generation of the
            // write-ahead log, so nothing may be added to it any more.
            (Phase::Wal | Phase::Commit, _) => (Unknown, true, false),
        };
        FailureClass { kind, fatal, separable }
    }
}

impl From<rusqlite::Error> for Failure {
    /// The phase is [`Phase::Work`] unless it is given.
    fn from(error: rusqlite::Error) -> Self {
        Self::at(Phase::Work)(error)
    }
}

/// Why an operation was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum RefuseReason {
    #[error("the store was opened read-only; write through the process that owns it")]
    ReadOnly,
    #[error("too many operations are queued for the disk")]
    QueueFull,
    #[error("no room for new records; sweep, allow more, or free some disk space")]
    NoRoom,
    #[error(
        "the process that owns the store does not commit; check the room on its disk, and open the store again if that \
         process has ended"
    )]
    NotCommitted,
    #[error("the store has stopped: a write or sync failed, and later ones prove nothing; open it again")]
    Stopped,
    #[error(
        "files of the store were removed or replaced while it was open; restore them, or open the store that is there now"
    )]
    Replaced,
    #[error("the writer thread ended before it replied")]
    WriterGone,
    #[error("the record is unreadable and was left as it is")]
    Unreadable,
    #[error("the cursor was not given by this store")]
    Cursor,
    #[error("an outcome may have 64 MiB")]
    OutcomeTooLarge,
    #[error("the names in a scope may have 64 KiB together")]
    ScopeTooLarge,
}

impl RefuseReason {
    pub(crate) fn error(self, op: &'static str) -> StoreError {
        let kind = match self {
            Self::ReadOnly | Self::Cursor => StoreErrorKind::Invalid,
            Self::QueueFull | Self::NotCommitted => StoreErrorKind::Unavailable,
            Self::NoRoom => StoreErrorKind::Full,
            Self::Stopped | Self::Replaced => StoreErrorKind::Stopped,
            Self::WriterGone => StoreErrorKind::Unknown,
            Self::Unreadable => StoreErrorKind::Incompatible,
            Self::OutcomeTooLarge | Self::ScopeTooLarge => StoreErrorKind::TooLarge,
        };
        StoreError::new(kind, op).with_source(self)
    }
}

#[cfg(test)]
mod tests;
