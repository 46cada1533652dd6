//! Recovery after a crash. A crash is a copy of the files, taken while the store is open.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hapax_core::{Claim, Deleted, Lookup, ManualClock, Reason, Store, StoreErrorKind};
use hapax_store_file::FileStore;
use tempfile::TempDir;

use crate::fixture::{Home, acquire, ask, done, finish, scoped};

/// The offset of the first frame of the write-ahead log, and the length of a frame header.
const FRAMES_AT: usize = 1024;
const FRAME_HEADER: usize = 52;

/// Copies a store's files in another process: closing them in this one would release SQLite's locks.
///
/// The write-ahead log first: the database has everything that is committed in between.
pub(crate) fn copy(home: &Home, to: &Path) {
    for name in ["hapax.journal", "hapax.db-wal", "hapax.db"] {
        let copied = Command::new("cp").arg(home.path().join(name)).arg(to).status().unwrap();
        assert!(copied.success(), "{name}");
    }
}

fn open(home: &Home, dir: &Path) -> FileStore {
    FileStore::options().clock(home.clock.clone()).open(dir).unwrap()
}

#[tokio::test]
async fn acknowledged_operations_survive_a_crash() {
    let home = Home::new();
    let store = home.open_uncommitted();
    for n in 0..20 {
        finish(&store, &format!("done-{n}"), "result").await;
        let open_lease = acquire(&store, &format!("open-{n}")).await;
        let crashed = TempDir::new().unwrap();
        copy(&home, crashed.path());
        let reopened = open(&home, crashed.path());
        for earlier in 0..=n {
            match reopened.claim(&ask(&format!("done-{earlier}"))).await.unwrap() {
                Claim::Replay { recorded, .. } => assert_eq!(recorded, done("result")),
                other => panic!("done-{earlier} after {n}: {other:?}"),
            }
        }
        let claim = reopened.claim(&ask(&format!("open-{n}"))).await.unwrap();
        assert_eq!(claim, Claim::Uncertain { fence: open_lease.fence, reason: Reason::Restarted });
    }
}

#[tokio::test]
async fn a_torn_tail_loses_only_the_torn_batch() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "whole", "x").await;
    // Commits it to the database, so that the log starts over.
    store.stats().await.unwrap();
    finish(&store, "torn", "x").await;
    let crashed = TempDir::new().unwrap();
    copy(&home, crashed.path());
    let mut log = fs::read(crashed.path().join("hapax.journal")).unwrap();
    drop(store);
    // The batch was not acknowledged: it has no trailer.
    log.truncate(log.len() - FRAME_HEADER);
    for cut in (FRAMES_AT..log.len()).step_by(25) {
        let torn = TempDir::new().unwrap();
        for name in ["hapax.db", "hapax.db-wal"] {
            fs::copy(crashed.path().join(name), torn.path().join(name)).unwrap();
        }
        fs::write(torn.path().join("hapax.journal"), &log[..cut]).unwrap();
        let reopened = open(&home, torn.path());
        assert!(matches!(reopened.claim(&ask("whole")).await.unwrap(), Claim::Replay { .. }), "cut at {cut}");
        // Never a part of it.
        match reopened.get(&scoped("torn").id).await.unwrap() {
            Lookup::Absent | Lookup::Found { .. } => {}
            other => panic!("cut at {cut}: {other:?}"),
        }
        finish(&reopened, "next", "x").await;
    }
}

#[tokio::test]
async fn an_earlier_copy_of_the_database_is_refused() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "a", "x").await;
    store.stats().await.unwrap();
    let earlier = TempDir::new().unwrap();
    copy(&home, earlier.path());
    for name in ["b", "c"] {
        finish(&store, name, "x").await;
        store.stats().await.unwrap();
    }
    finish(&store, "d", "x").await;
    let later = TempDir::new().unwrap();
    copy(&home, later.path());
    fs::copy(later.path().join("hapax.journal"), earlier.path().join("hapax.journal")).unwrap();
    let error = FileStore::open(earlier.path()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("its write-ahead log is of a later state"), "{cause}");
}

#[tokio::test]
async fn a_damaged_log_is_not_taken_for_a_torn_one() {
    let home = Home::new();
    let store = home.open_uncommitted();
    let crashed = TempDir::new().unwrap();
    finish(&store, "a", "x").await;
    finish(&store, "b", "x").await;
    copy(&home, crashed.path());
    let log = crashed.path().join("hapax.journal");
    let bytes = fs::read(&log).unwrap();
    let trailer_at = bytes.len() - FRAME_HEADER;
    // Also in the last batch, which was acknowledged.
    for at in [FRAMES_AT, FRAMES_AT + 100, trailer_at - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&log, damaged).unwrap();
        let error = FileStore::open(crashed.path()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Incompatible, "byte {at}");
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains("hapax.journal is damaged"), "byte {at}: {cause}");
    }
}

#[tokio::test]
async fn a_read_only_open_recovers_after_a_crash() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "done", "x").await;
    let lease = acquire(&store, "open").await;
    let crashed = TempDir::new().unwrap();
    copy(&home, crashed.path());
    let reader = FileStore::options().clock(home.clock.clone()).open_read_only(crashed.path()).unwrap();
    let stats = reader.stats().await.unwrap();
    assert_eq!((stats.completed, stats.uncertain, stats.in_progress), (1, 1, 0));
    assert!(matches!(reader.get(&lease.id).await.unwrap(), Lookup::Found { .. }));
}

#[tokio::test]
async fn a_deletion_survives_a_crash() {
    let home = Home::new();
    let store = home.open_uncommitted();
    let lease = finish(&store, "a", "x").await;
    store.stats().await.unwrap();
    assert_eq!(store.delete(&lease.id, lease.fence.nonce).await.unwrap(), Deleted::Applied);
    let crashed = TempDir::new().unwrap();
    copy(&home, crashed.path());
    assert_eq!(open(&home, crashed.path()).get(&lease.id).await.unwrap(), Lookup::Absent);
}

#[tokio::test]
async fn an_orderly_close_leaves_no_logs() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "a", "x").await;
    drop(store);
    assert!(!home.path().join("hapax.db-wal").exists());
    assert!(!home.path().join("hapax.journal").exists());
}

#[tokio::test]
async fn a_crash_puts_the_clock_ahead_and_never_back() {
    let home = Home::new();
    let store = home.open_uncommitted();
    acquire(&store, "a").await;
    let crashed = TempDir::new().unwrap();
    copy(&home, crashed.path());
    let reopened = open(&home, crashed.path());
    let Lookup::Found { record, now } = reopened.get(&scoped("a").id).await.unwrap() else { panic!() };
    assert!(now >= record.created_at);
    assert!(now.since(record.created_at).as_secs() <= 1);
}

#[tokio::test]
async fn the_clock_is_not_before_the_log_after_a_crash() {
    let home = Home::new();
    let store = home.open_uncommitted();
    acquire(&store, "a").await;
    store.stats().await.unwrap();
    home.clock.advance(Duration::from_secs(3600));
    acquire(&store, "b").await;
    let crashed = TempDir::new().unwrap();
    copy(&home, crashed.path());
    let reopened = FileStore::options().clock(ManualClock::new()).open(crashed.path()).unwrap();
    let Lookup::Found { record, now } = reopened.get(&scoped("b").id).await.unwrap() else { panic!() };
    assert!(record.updated_at >= record.created_at && now >= record.updated_at, "{record:?} at {now:?}");
}
