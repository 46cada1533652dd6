//! [`JournalError`]: why the journal cannot be used.

use std::io;
use std::path::PathBuf;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal is not named as `file:DIR`.
    #[error("a journal is named as file:DIR, not as {url:?}")]
    #[non_exhaustive]
    Url {
        /// The name.
        url: String,
    },
    /// There is no journal, and none is to be created.
    #[error("there is no journal in {}", directory.display())]
    #[non_exhaustive]
    Missing {
        /// The directory.
        directory: PathBuf,
    },
    /// Another process uses the journal.
    #[error("another process uses the journal in {}", directory.display())]
    #[non_exhaustive]
    InUse {
        /// Its directory.
        directory: PathBuf,
    },
    /// The file is not a journal.
    #[error("{} is not a journal of this version", path.display())]
    #[non_exhaustive]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Calls that were on disk cannot be read. Nothing was changed.
    #[error("the journal {} is damaged at byte {at}", path.display())]
    #[non_exhaustive]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first byte that cannot be read.
        at: u64,
    },
    /// The body is a stream: it cannot be recorded.
    #[error("a streamed body cannot be recorded")]
    StreamedBody,
    /// The call is larger than the journal takes.
    #[error("the call has {size} bytes, more than the journal takes")]
    #[non_exhaustive]
    TooLarge {
        /// Its size.
        size: usize,
    },
    /// A file operation failed.
    #[error("failed to {operation} {}", path.display())]
    #[non_exhaustive]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Its error.
        #[source]
        source: io::Error,
    },
    /// An earlier write or sync failed, so the state of the disk is unknown. A restart reads it again.
    #[error("the journal stopped after a failed write")]
    Stopped,
}
