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
    pub(crate) sync: Sync,
    pub(crate) gather: Duration,
    pub(crate) network: Network,
    pub(crate) index_after: Option<usize>,
    pub(crate) commit_after: Option<u64>,
    pub(crate) commits: Commits,
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Sync {
    #[default]
    Full,
    Off,
}

/// When the transaction in the database is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Commits {
    /// When the store is idle for a moment, and when the transaction is old.
    #[default]
    Timed,
    /// Only when a reader needs it or the journal is long.
    OnDemand,
}

/// What to do about a directory on a network file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Network {
    #[default]
    Refuse,
    Allow,
}

impl Options {
    /// The defaults: the system's clock, no limit of size, no waiting for others.
    pub fn new() -> Self {
        Self::default()
    }

    /// Judges leases and retention by this clock instead of the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Refuses to grow the database beyond this many bytes: claims then fail with
    /// [`Full`](hapax_core::StoreErrorKind::Full) until a sweep or a deletion makes room.
    ///
    /// The log and the journal beside the database come on top; they are usually below 45 MiB. Opening may go a few pages beyond
    /// the limit, to mark the claims that an earlier process left open.
    pub fn size_max(mut self, bytes: u64) -> Self {
        self.size_max = Some(bytes);
        self
    }

    /// Waits up to this long for those who were answered together to ask again, so that they share one sync of the disk
    /// once more. A lone caller waits for nobody.
    ///
    /// Where callers keep all cores busy, less of their time goes into syncs, and more is done. Where cores are idle, it
    /// only delays: so the default is not to wait at all. A moment that is shorter than a sync is what is worth trying.
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

    /// Opens a directory that lies on a network file system all the same.
    ///
    /// Such file systems tend to grant one lock to two machines and to answer a sync before the bytes are safe.
    /// Either can make an operation run twice.
    pub fn danger_allow_network_file_system(mut self) -> Self {
        self.network = Network::Allow;
        self
    }

    /// Answers before the disk has the bytes. For tests that must see what that loses.
    #[doc(hidden)]
    pub fn danger_no_sync(mut self) -> Self {
        self.sync = Sync::Off;
        self
    }

    /// Writes entries of the index as soon as this many wait. For tests that must see it with few records.
    #[doc(hidden)]
    pub fn index_after(mut self, waiting: usize) -> Self {
        self.index_after = Some(waiting);
        self
    }

    /// Commits as soon as the journal has this many bytes. For tests that must see many commits in a short time.
    #[doc(hidden)]
    pub fn commit_after(mut self, bytes: u64) -> Self {
        self.commit_after = Some(bytes);
        self
    }

    /// Never commits because time has passed. For tests that must see what is in the journal only.
    #[doc(hidden)]
    pub fn commit_on_demand(mut self) -> Self {
        self.commits = Commits::OnDemand;
        self
    }

    /// Opens the store in `dir` as its one owner; see [`FileStore::open`].
    ///
    /// # Errors
    /// As [`FileStore::open`].
    pub fn open(self, dir: impl AsRef<Path>) -> Result<FileStore, StoreError> {
        FileStore::open_with(dir.as_ref(), self)
    }

    /// Opens the store in `dir` to look at it; see [`FileStore::open_read_only`].
    ///
    /// # Errors
    /// As [`FileStore::open_read_only`].
    pub fn open_read_only(self, dir: impl AsRef<Path>) -> Result<FileStore, StoreError> {
        FileStore::open_read_only_with(dir.as_ref(), self)
    }
}
