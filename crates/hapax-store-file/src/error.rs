//! What can go wrong, and what it means for those who wait: driver error -> [`StoreErrorKind`], in one place.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hapax_core::{StoreError, StoreErrorKind};
use rusqlite::{ErrorCode, ffi};

/// Why a directory could not be opened as a store; the source of the [`StoreError`] that
/// [`FileStore::open`](crate::FileStore::open) returns. Each says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is something else where the directory should be.
    NotADirectory {
        /// Where.
        path: PathBuf,
    },
    /// The directory or a file in it cannot be made, read or written.
    Inaccessible {
        /// Where.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The directory lies on a network file system.
    Network {
        /// Where.
        path: PathBuf,
        /// Which file system.
        file_system: &'static str,
    },
    /// Every user of the machine may write to the directory, and so put other files in the place of the store's.
    WritableByAll {
        /// Where.
        path: PathBuf,
    },
    /// A file of the store is a symbolic link to another place.
    SymbolicLink {
        /// Where.
        path: PathBuf,
    },
    /// Another process owns the store.
    InUse {
        /// Where.
        path: PathBuf,
        /// Who, when it said so.
        pid: Option<u32>,
    },
    /// Somebody reads the database and keeps what an earlier process left in its log from being moved.
    LogHeld {
        /// Where.
        path: PathBuf,
    },
    /// The disk has no room for what must be written down before the store can be used.
    Full {
        /// Where.
        path: PathBuf,
    },
    /// There is no store to look at.
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// The file is no store of ours.
    Foreign {
        /// Where.
        path: PathBuf,
    },
    /// The database or its journal is not what was written, or the two are not of one moment.
    Damaged {
        /// Where.
        path: PathBuf,
        /// The first thing that was found.
        found: String,
    },
    /// The database is gone while other files of the store are still there.
    Incomplete {
        /// Where the database should be.
        path: PathBuf,
    },
    /// The store was written by a version that this one does not know.
    Version {
        /// Where.
        path: PathBuf,
        /// The version of its layout.
        found: u32,
    },
    /// The database engine cannot work with the file.
    Engine {
        /// Where.
        path: PathBuf,
        /// What it said.
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

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADirectory { path } => {
                write!(
                    f,
                    "{} is not a directory; name a directory, or one that may be created",
                    path.display()
                )
            }
            Self::Inaccessible { path, .. } => write!(
                f,
                "{} cannot be used; check that it exists, that this user may read and write it and that the \
                 file system is not read-only",
                path.display()
            ),
            Self::Network { path, file_system } => write!(
                f,
                "{} lies on {file_system}, a network file system, whose locks and syncs cannot be relied on; \
                 use a local disk, or a store with a server",
                path.display()
            ),
            Self::WritableByAll { path } => write!(
                f,
                "every user of this machine may write to {}; take that right away (chmod o-w), or name a directory in it, \
                 which is then made for this user alone",
                path.display()
            ),
            Self::SymbolicLink { path } => write!(
                f,
                "{} is a symbolic link; put the file itself there, or name the directory that it lies in",
                path.display()
            ),
            Self::InUse { path, pid: Some(pid) } => write!(
                f,
                "{} is in use by process {pid}; stop that process, or open the store read-only",
                path.display()
            ),
            Self::InUse { path, pid: None } => write!(
                f,
                "{} is in use by another process; stop that process, or open the store read-only",
                path.display()
            ),
            Self::LogHeld { path } => write!(
                f,
                "somebody reads {} in one long transaction and keeps its log from being emptied, as a database \
                 shell or a backup does; let that end, and open the store again",
                path.display()
            ),
            Self::Full { path } => write!(
                f,
                "the disk has no room to put {} in order after an earlier process: to note what became of its \
                 claims, and to complete the index; free some space, and open the store again",
                path.display()
            ),
            Self::Missing { path } => {
                write!(f, "there is no store in {}; check the path, or open it for writing", path.display())
            }
            Self::Foreign { path } => write!(
                f,
                "{} is not the database of a store, or its beginning is damaged; choose another directory, or \
                 put a good copy back",
                path.display()
            ),
            Self::Damaged { path, found } => write!(
                f,
                "{} is damaged, and operations in it could run again ({found}); put a good copy of all files back, or \
                 make its index anew if nothing else is damaged",
                path.display()
            ),
            Self::Incomplete { path } => write!(
                f,
                "{} is missing while other files of the store are still there; put the database back, or remove these \
                 too if all records may be forgotten",
                path.display()
            ),
            Self::Version { path, found } => write!(
                f,
                "{} has layout version {found} and this program knows version {}; use the program that wrote \
                 it, or a newer one",
                path.display(),
                crate::schema::VERSION
            ),
            Self::Engine { path, .. } => write!(
                f,
                "{} cannot be opened by the database engine; if it is damaged put a good copy back, and do not \
                 delete it unless all records may be forgotten",
                path.display()
            ),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Inaccessible { source, .. } => Some(source),
            Self::Engine { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What a driver error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// No room, in the file or on the disk. Nothing is wrong with what is stored.
    Full,
    /// Somebody else holds the database's own lock, such as a person with a shell.
    Busy,
    /// A value beyond the engine's limits.
    TooLarge,
    /// Bytes that are not what the engine wrote.
    Corrupt,
    /// The file of shared memory beside the log could not grow or be locked; the log itself was written.
    SharedMemory,
    /// The operating system failed to read, write or sync. After that nobody can say what is on the disk.
    Io,
    /// Something that should not happen.
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

    /// The kind for a read, which changes nothing and settles nothing.
    pub(crate) fn of_read(self) -> StoreErrorKind {
        match self {
            Self::Corrupt | Self::Other => StoreErrorKind::Incompatible,
            _ => StoreErrorKind::Unavailable,
        }
    }
}

/// How far a transaction had come when it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It was making sure that the store is still where it was opened.
    Footing,
    /// It had not begun.
    Begin,
    /// It was reading and writing; none of it can have reached the database.
    Work,
    /// It was bringing what was decided to the journal.
    Journal,
    /// It was committing.
    Commit,
}

/// A transaction that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    phase: Phase,
    // Every caller of the batch gets it.
    source: Arc<rusqlite::Error>,
}

/// What a failed transaction means for its callers and for the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Judgement {
    /// What the callers are told.
    pub(crate) kind: StoreErrorKind,
    /// Whether the store must stop, because nobody can say what a later sync would mean.
    pub(crate) fatal: bool,
    /// Whether other operations of the batch may succeed without the one that failed.
    pub(crate) separable: bool,
}

impl Failure {
    pub(crate) fn at(phase: Phase) -> impl Fn(rusqlite::Error) -> Self {
        move |source| Self { phase, source: Arc::new(source) }
    }

    /// A file of the open store is gone, or another one is in its place.
    pub(crate) fn lost(path: &Path) -> Self {
        let why = format!("{} was removed or replaced", path.display());
        let code = ffi::Error::new(ffi::SQLITE_IOERR);
        Self::at(Phase::Footing)(rusqlite::Error::SqliteFailure(code, Some(why)))
    }

    pub(crate) fn error(&self, op: &'static str) -> StoreError {
        StoreError::new(self.judge().kind, op).with_source(self.clone())
    }

    pub(crate) fn judge(&self) -> Judgement {
        use StoreErrorKind::{Full, Incompatible, Stopped, TooLarge, Unavailable, Unknown};
        let (kind, fatal, separable) = match (self.phase, Cause::of(&self.source)) {
            (_, Cause::Busy) => (Unavailable, false, false),
            // Nothing of the batch is there, and none of it alone would fare better.
            (Phase::Journal, Cause::Full) => (Full, false, false),
            (_, Cause::Full) => (Full, false, true),
            (_, Cause::TooLarge) => (TooLarge, false, true),
            // The engine refuses to commit after it has read a damaged page, and has written nothing then.
            (Phase::Footing | Phase::Begin | Phase::Work | Phase::Commit, Cause::Corrupt) => {
                (Incompatible, false, true)
            }
            (Phase::Footing | Phase::Begin | Phase::Work, Cause::SharedMemory) => (Unavailable, false, false),
            (Phase::Footing | Phase::Begin | Phase::Work, Cause::Io) => (Stopped, true, false),
            (Phase::Footing | Phase::Begin | Phase::Work, Cause::Other) => (Unavailable, false, true),
            // The log may hold the commit although this process does not see it. It says that the journal is done
            // with, so nothing may be added to the journal any more.
            (Phase::Journal | Phase::Commit, _) => (Unknown, true, false),
        };
        Judgement { kind, fatal, separable }
    }
}

impl From<rusqlite::Error> for Failure {
    /// What fails in a transaction fails at its work, unless something else is said.
    fn from(error: rusqlite::Error) -> Self {
        Self::at(Phase::Work)(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.phase {
            Phase::Footing => "find the files that were opened",
            Phase::Begin => "begin a transaction",
            Phase::Work => "read or write in a transaction",
            Phase::Journal => "write to the journal",
            Phase::Commit => "commit a transaction",
        })?;
        write!(f, ": {}", self.source)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// Why a call was refused, in words for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    ReadOnly,
    QueueFull,
    NoRoom,
    NotCommitted,
    Stopped,
    Replaced,
    AnswerLost,
    Unreadable,
    Cursor,
    OutcomeTooLarge,
    ScopeTooLarge,
}

impl Refusal {
    pub(crate) fn error(self, op: &'static str) -> StoreError {
        let kind = match self {
            Self::ReadOnly | Self::Cursor => StoreErrorKind::Invalid,
            Self::QueueFull | Self::NotCommitted => StoreErrorKind::Unavailable,
            Self::NoRoom => StoreErrorKind::Full,
            Self::Stopped | Self::Replaced => StoreErrorKind::Stopped,
            Self::AnswerLost => StoreErrorKind::Unknown,
            Self::Unreadable => StoreErrorKind::Incompatible,
            Self::OutcomeTooLarge | Self::ScopeTooLarge => StoreErrorKind::TooLarge,
        };
        StoreError::new(kind, op).with_source(self)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "the store was opened read-only; write through the process that owns it",
            Self::QueueFull => "too many operations wait for the disk",
            Self::NoRoom => "there is no room for new records; sweep, allow more, or free some disk space",
            Self::NotCommitted => {
                "the process that owns the store does not commit what it has written; look for room on its disk, and \
                 if it has ended open the store again"
            }
            Self::Stopped => "a write or sync failed, so nobody can say what a later one would mean",
            Self::Replaced => {
                "files of the store were removed or replaced while it was open; put them back as they were, or open what \
                 is there now"
            }
            Self::AnswerLost => "the writing thread ended before it could answer",
            Self::Unreadable => "the record is there and cannot be read, so it is left as it is",
            Self::Cursor => "the cursor was not given by this store",
            Self::OutcomeTooLarge => "an outcome may have 64 MiB",
            Self::ScopeTooLarge => "the names in a scope may have 64 KiB together",
        })
    }
}

impl Error for Refusal {}

#[cfg(test)]
mod tests;
