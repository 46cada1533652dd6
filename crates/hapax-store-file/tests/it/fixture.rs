//! A store in a temporary directory, and shorthands for its operations.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax_core::{Lookup, ManualClock, Record, RecordId, Store};
use hapax_store_file::FileStore;
pub(crate) use hapax_testkit::operations::{
    LEASE, RETENTION, UNCERTAIN_RETENTION, acquire, ask, ask_for, done, finish, scoped,
};
use rusqlite::Connection;
use tempfile::TempDir;

/// A directory for a store, and the store's clock.
pub(crate) struct Home {
    dir: TempDir,
    pub(crate) clock: ManualClock,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap(), clock: ManualClock::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("hapax.db")
    }

    pub(crate) fn open(&self) -> FileStore {
        FileStore::options().clock(self.clock.clone()).open(self.path()).unwrap()
    }

    /// A store that commits on demand only: the latest records are in the write-ahead log only.
    pub(crate) fn open_uncommitted(&self) -> FileStore {
        FileStore::options().clock(self.clock.clone()).commit_on_demand().open(self.path()).unwrap()
    }

    /// Another connection to the database, as of a database shell.
    pub(crate) fn shell(&self) -> Connection {
        let shell = Connection::open(self.database()).unwrap();
        shell.busy_timeout(Duration::from_secs(10)).unwrap();
        shell
    }
}

pub(crate) async fn look_up(store: &dyn Store, id: &RecordId) -> Record {
    match store.get(id).await.unwrap() {
        Lookup::Found { record, .. } => *record,
        other => panic!("{id} was not found: {other:?}"),
    }
}
