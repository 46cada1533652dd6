//! [`Options`]: how to open a file store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Clock, StoreError};

use crate::store::FileStore;

/// How to open a [`FileStore`].
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// let store = hapax_store_file::FileStore::options().size_max(4 << 30).open(dir.path())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) size_max: Option<u64>,
    pub(crate) sync: SyncMode,
    pub(crate) gather: Duration,
    pub(crate) network: NetworkPolicy,
    pub(crate) index_after: Option<usize>,
    pub(crate) commit_after: Option<u64>,
    pub(crate) commits: CommitPolicy,
}

/// Whether batches and commits are fsynced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum SyncMode {
    #[default]
    Full,
    Off,
}

/// When the database transaction is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum CommitPolicy {
    /// When the store is idle, when the transaction is old, and on demand.
    #[default]
    Timed,
    /// When a reader needs it, and when the write-ahead log is long.
    OnDemand,
}

/// Whether a directory on a network file system is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum NetworkPolicy {
    #[default]
    Refuse,
    Allow,
}

impl Options {
    /// The defaults: the system's clock, no size limit, no waiting for other callers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this clock for leases and retention instead of the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Limits the database to this many bytes: claims then fail with [`Full`](hapax_core::StoreErrorKind::Full) until
    /// a sweep or a deletion makes room.
    ///
    /// The two logs beside the database come on top; they are usually below 45 MiB. Opening may exceed the limit by a few
    /// pages, to make claims of an earlier process uncertain.
    pub fn size_max(mut self, bytes: u64) -> Self {
        self.size_max = Some(bytes);
        self
    }

    /// Waits up to this long for the callers of the last batch to call again, so that they share one fsync again. A lone
    /// caller does not wait.
    ///
    /// If callers keep all cores busy, fewer syncs leave more time for work. If cores are idle, it only adds latency, so the
    /// default is not to wait. A useful value is shorter than an fsync.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let dir = tempfile::tempdir()?;
    /// let options = hapax_store_file::FileStore::options().gather(Duration::from_micros(100));
    /// let store = options.open(dir.path())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn gather(mut self, wait_max: Duration) -> Self {
        self.gather = wait_max;
        self
    }

    /// Accepts a directory on a network file system.
    ///
    /// Such file systems may grant one lock to two machines, or acknowledge a sync before the bytes are durable.
    /// Either can make an operation run twice.
    pub fn danger_allow_network_file_system(mut self) -> Self {
        self.network = NetworkPolicy::Allow;
        self
    }

    /// Acknowledges without fsync. For tests that show what that loses.
    #[doc(hidden)]
    pub fn danger_no_sync(mut self) -> Self {
        self.sync = SyncMode::Off;
        self
    }

    /// Flushes index entries as soon as the memtable has more than this many. For tests with few records.
    #[doc(hidden)]
    pub fn index_after(mut self, waiting: usize) -> Self {
        self.index_after = Some(waiting);
        self
    }

    /// Commits as soon as the write-ahead log has this many bytes. For tests with many commits in a short time.
    #[doc(hidden)]
    pub fn commit_after(mut self, bytes: u64) -> Self {
        self.commit_after = Some(bytes);
        self
    }

    /// Commits on demand only, not by time. For tests of records that are in the write-ahead log only.
    #[doc(hidden)]
    pub fn commit_on_demand(mut self) -> Self {
        self.commits = CommitPolicy::OnDemand;
        self
    }

    /// Opens the store in `dir` as its one owner; see [`FileStore::open`].
    ///
    /// # Errors
    /// As [`FileStore::open`].
    pub fn open(self, dir: impl AsRef<Path>) -> Result<FileStore, StoreError> {
        FileStore::open_with(dir.as_ref(), self)
    }

    /// Opens the store in `dir` for reading; see [`FileStore::open_read_only`].
    ///
    /// # Errors
    /// As [`FileStore::open_read_only`].
    pub fn open_read_only(self, dir: impl AsRef<Path>) -> Result<FileStore, StoreError> {
        FileStore::open_read_only_with(dir.as_ref(), self)
    }
}
