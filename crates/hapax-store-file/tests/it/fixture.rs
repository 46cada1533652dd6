//! A store in a directory of its own, and short ways to ask it for things.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Fingerprint, Format, Key, Lease, Lookup, ManualClock, Nonce, OnLapse,
    Record, RecordId, Recorded, Scope, ScopedKey, Store,
};
use hapax_store_file::FileStore;
use rusqlite::Connection;
use tempfile::TempDir;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const RETENTION: Duration = Duration::from_secs(24 * 3600);
pub(crate) const UNCERTAIN_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

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

    /// The database as a person with a shell sees it.
    pub(crate) fn shell(&self) -> Connection {
        let shell = Connection::open(self.database()).unwrap();
        shell.busy_timeout(Duration::from_secs(10)).unwrap();
        shell
    }
}

pub(crate) fn scoped(name: &str) -> ScopedKey {
    ScopedKey::new(Scope::new("POST /orders"), &Key::new(name).unwrap())
}

pub(crate) fn ask(name: &str) -> ClaimRequest {
    ask_for(scoped(name))
}

pub(crate) fn ask_for(key: ScopedKey) -> ClaimRequest {
    ClaimRequest {
        key,
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::random(),
        lease: LEASE,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 3,
        uncertain_retention: UNCERTAIN_RETENTION,
    }
}

pub(crate) fn done(text: &str) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, text.to_owned())
}

pub(crate) async fn acquire(store: &dyn Store, name: &str) -> Lease {
    match store.claim(&ask(name)).await.unwrap() {
        Claim::Acquired(lease) => lease,
        other => panic!("{name} was not acquired: {other:?}"),
    }
}

pub(crate) async fn finish(store: &dyn Store, name: &str, text: &str) -> Lease {
    let lease = acquire(store, name).await;
    assert_eq!(store.complete(&lease, &done(text), RETENTION).await.unwrap(), Fenced::Applied);
    lease
}

pub(crate) async fn look_up(store: &dyn Store, id: &RecordId) -> Record {
    match store.get(id).await.unwrap() {
        Lookup::Found { record, .. } => *record,
        other => panic!("{id} was not found: {other:?}"),
    }
}
