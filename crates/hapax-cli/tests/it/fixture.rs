//! A directory with a file store whose records are created through the library.

use std::path::{Path, PathBuf};
use std::sync::RwLockReadGuard;
use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Class, Clock, Fingerprint, Format, Key, Lease, ManualClock, Nonce, OnLapse, Reason,
    RecordId, Recorded, Scope, ScopedKey, Store, SystemClock, Timestamp,
};
use hapax_store_file::FileStore;
use tempfile::TempDir;

use crate::binary::STARTING;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// The payload of all records, searched for where it must not appear.
pub(crate) const PAYLOAD: &str = "\"canary-payload-7f3a\"";
/// The prefix of all keys, searched for where it must not appear.
pub(crate) const KEY: &str = "canary-key-91bc";

/// A temporary working directory for commands, with their default store.
pub(crate) struct Fixture {
    dir: TempDir,
}

impl Fixture {
    /// A directory without a store.
    pub(crate) fn bare() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A directory in memory, without a store. Without a tmpfs the test fails.
    #[cfg(target_os = "linux")]
    pub(crate) fn on_tmpfs() -> Self {
        const IN_MEMORY: &str = "/dev/shm";
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        // Device, mount point and type of the file system; of several mounts, the last one is effective.
        let mut fields = mounts.lines().map(|mount| mount.split(' ').collect::<Vec<_>>());
        let kind = fields.rfind(|fields| fields[1] == IN_MEMORY).map(|fields| fields[2].to_owned());
        assert_eq!(
            kind.as_deref(),
            Some("tmpfs"),
            "this test needs a tmpfs: mount -t tmpfs tmpfs {IN_MEMORY}"
        );
        Self { dir: tempfile::tempdir_in(IN_MEMORY).unwrap() }
    }

    /// A directory with an empty store.
    pub(crate) fn empty() -> Self {
        let fixture = Self::bare();
        fixture.open_and_close();
        fixture
    }

    /// A directory with a store that `work` has filled, `ago` before now.
    pub(crate) fn prepared(ago: Duration, work: impl AsyncFnOnce(&Prepare)) -> Self {
        let fixture = Self::bare();
        fixture.prepare(ago, work);
        fixture
    }

    /// Fills the store, `ago` before now.
    pub(crate) fn prepare(&self, ago: Duration, work: impl AsyncFnOnce(&Prepare)) {
        let _no_process_starts = no_process_starts();
        let now = SystemClock::new().now();
        let start = Timestamp::from_millis(now.as_millis() - u64::try_from(ago.as_millis()).unwrap());
        let clock = ManualClock::at(start);
        let store = FileStore::options().clock(clock).open(self.store()).unwrap();
        block_on(work(&Prepare { store }));
    }

    /// Opens the store as its next owner, and closes it.
    pub(crate) fn open_and_close(&self) {
        let _no_process_starts = no_process_starts();
        drop(self.open());
    }

    /// Opens the store and keeps it open.
    pub(crate) fn open(&self) -> FileStore {
        FileStore::open(self.store()).unwrap()
    }

    /// Damages all records in the database.
    pub(crate) fn damage_records(&self) {
        let database = rusqlite::Connection::open(self.database()).unwrap();
        let damaged = database.execute("UPDATE record SET head = x'ffff'", []).unwrap();
        assert!(damaged > 0);
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The default store of commands.
    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("hapax-data")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.store().join("hapax.db")
    }
}

/// Held while a store is open that another process opens next.
pub(crate) fn no_process_starts() -> RwLockReadGuard<'static, ()> {
    STARTING.read().unwrap_or_else(|test_that_failed| test_that_failed.into_inner())
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// A store to be filled.
pub(crate) struct Prepare {
    pub(crate) store: FileStore,
}

impl Prepare {
    /// Claims a key for the operation `charge`.
    pub(crate) async fn claim(&self, name: &str) -> Lease {
        self.claim_in(Scope::new("charge"), name).await
    }

    pub(crate) async fn claim_in(&self, scope: Scope, name: &str) -> Lease {
        let ask = ClaimRequest {
            key: ScopedKey::new(scope, &key(name)),
            fingerprint: Fingerprint::empty(),
            nonce: Nonce::random(),
            lease: Duration::from_secs(30),
            on_lapse: OnLapse::Uncertain,
            attempts_max: 5,
            uncertain_retention: 30 * DAY,
        };
        match self.store.claim(&ask).await.unwrap() {
            Claim::Acquired(lease) => lease,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn completed(&self, name: &str, retention: Duration) -> RecordId {
        let lease = self.claim(name).await;
        let done = Recorded::new(Class::Success, Format::FUNCTION, PAYLOAD);
        self.store.complete(&lease, &done, retention).await.unwrap();
        lease.id
    }

    pub(crate) async fn failed(&self, name: &str) -> RecordId {
        let lease = self.claim(name).await;
        let done = Recorded::new(Class::Error, Format::FUNCTION, PAYLOAD);
        self.store.complete(&lease, &done, 30 * DAY).await.unwrap();
        lease.id
    }

    pub(crate) async fn released(&self, name: &str) -> RecordId {
        let lease = self.claim(name).await;
        self.store.release(&lease, None).await.unwrap();
        lease.id
    }

    pub(crate) async fn uncertain(&self, name: &str) -> RecordId {
        let lease = self.claim(name).await;
        self.store.abandon(&lease, Reason::Panicked).await.unwrap();
        lease.id
    }
}

/// The key for the short `name`.
pub(crate) fn key_text(name: &str) -> String {
    format!("{KEY}-{name}")
}

fn key(name: &str) -> Key {
    Key::new(key_text(name)).unwrap()
}
