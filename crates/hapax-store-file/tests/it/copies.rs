//! Files of a store that are missing, old, or copied without the others are refused.

use std::error::Error;
use std::fs;
use std::path::Path;

use hapax_core::{Claim, Store, StoreErrorKind};
use hapax_store_file::{FileStore, OpenError};
use tempfile::TempDir;

use crate::crash::copy;
use crate::fixture::{Home, acquire, ask, finish};

/// The error of opening the store in `dir`, as its owner and as a reader.
fn refused(home: &Home, dir: &Path) -> String {
    let options = || FileStore::options().clock(home.clock.clone());
    let [owner, reader] = [options().open(dir), options().open_read_only(dir)].map(|opened| {
        let error = opened.expect_err("the store is refused");
        assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{error:?}");
        let cause = error.source().and_then(|cause| cause.downcast_ref::<OpenError>()).unwrap();
        assert!(matches!(cause, OpenError::Damaged { .. } | OpenError::Incomplete { .. }), "{cause}");
        cause.to_string()
    });
    assert_eq!(owner, reader);
    owner
}

/// The files after a crash, with a record that only the write-ahead log has.
async fn crashed(home: &Home) -> TempDir {
    let store = home.open_uncommitted();
    for name in ["a", "b"] {
        finish(&store, name, "x").await;
        store.stats().await.unwrap();
    }
    finish(&store, "c", "x").await;
    let crashed = TempDir::new().unwrap();
    copy(home, crashed.path());
    crashed
}

#[tokio::test]
async fn a_missing_log_after_a_crash_is_refused() {
    let home = Home::new();
    let dir = crashed(&home).await;
    fs::remove_file(dir.path().join("hapax.journal")).unwrap();
    let text = refused(&home, dir.path());
    assert!(text.contains("hapax.journal") && text.contains("missing"), "{text}");
    // The refused open has not created it.
    assert!(!dir.path().join("hapax.journal").exists());
}

#[tokio::test]
async fn an_empty_or_zeroed_log_after_a_crash_is_refused() {
    for zeroed in [false, true] {
        let home = Home::new();
        let dir = crashed(&home).await;
        let log = dir.path().join("hapax.journal");
        let length = if zeroed { fs::metadata(&log).unwrap().len() as usize } else { 0 };
        fs::write(&log, vec![0; length]).unwrap();
        let text = refused(&home, dir.path());
        assert!(text.contains("hapax.journal") && text.contains("its header is damaged"), "{text}");
    }
}

#[tokio::test]
async fn a_log_older_than_the_database_is_refused() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "first", "x").await;
    let older = TempDir::new().unwrap();
    copy(&home, older.path());
    drop(store);
    let dir = crashed(&home).await;
    fs::copy(older.path().join("hapax.journal"), dir.path().join("hapax.journal")).unwrap();
    let text = refused(&home, dir.path());
    assert!(text.contains("older than the database"), "{text}");
}

#[tokio::test]
async fn a_database_copied_without_its_log_is_refused() {
    let home = Home::new();
    let crashed = crashed(&home).await;
    for names in [&["hapax.db", "hapax.db-wal"][..], &["hapax.db"]] {
        let dir = TempDir::new().unwrap();
        for name in names {
            fs::copy(crashed.path().join(name), dir.path().join(name)).unwrap();
        }
        let text = refused(&home, dir.path());
        assert!(text.contains("missing"), "{names:?}: {text}");
    }
}

#[tokio::test]
async fn a_store_without_its_database_is_refused() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "a", "x").await;
    drop(store);
    // An orderly close leaves only LOCK beside it.
    fs::remove_file(home.database()).unwrap();
    assert!(home.path().join("LOCK").exists());
    let text = refused(&home, home.path());
    assert!(text.contains("hapax.db is missing while other files"), "{text}");

    let home = Home::new();
    let dir = crashed(&home).await;
    for name in ["hapax.db", "hapax.db-wal"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    let text = refused(&home, dir.path());
    assert!(text.contains("hapax.db is missing while other files"), "{text}");
}

#[tokio::test]
async fn a_database_older_than_its_log_is_refused() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "first", "x").await;
    drop(store);
    let older = fs::read(home.database()).unwrap();
    let dir = crashed(&home).await;
    fs::remove_file(dir.path().join("hapax.db-wal")).unwrap();
    fs::write(dir.path().join("hapax.db"), older).unwrap();
    let text = refused(&home, dir.path());
    assert!(text.contains("its write-ahead log is of a later state"), "{text}");
}

#[tokio::test]
async fn the_database_of_a_closed_store_is_a_complete_copy() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "a", "x").await;
    acquire(&store, "open").await;
    drop(store);
    let dir = TempDir::new().unwrap();
    fs::copy(home.database(), dir.path().join("hapax.db")).unwrap();
    let store = FileStore::options().clock(home.clock.clone()).open(dir.path()).unwrap();
    assert!(matches!(store.claim(&ask("a")).await.unwrap(), Claim::Replay { .. }));
    assert!(matches!(store.claim(&ask("open")).await.unwrap(), Claim::Uncertain { .. }));
}

#[tokio::test]
async fn all_files_after_a_crash_are_a_complete_copy() {
    let home = Home::new();
    let dir = crashed(&home).await;
    let store = FileStore::options().clock(home.clock.clone()).open(dir.path()).unwrap();
    for name in ["a", "b", "c"] {
        assert!(matches!(store.claim(&ask(name)).await.unwrap(), Claim::Replay { .. }), "{name}");
    }
}

#[tokio::test]
async fn an_interrupted_start_can_be_repeated() {
    let home = Home::new();
    drop(home.open_uncommitted());
    // The write-ahead log exists before the database requires it.
    let store = home.open_uncommitted();
    let log = fs::read(home.path().join("hapax.journal")).unwrap();
    drop(store);
    fs::write(home.path().join("hapax.journal"), &log[..log.len().min(1024)]).unwrap();
    acquire(&home.open_uncommitted(), "a").await;
}

/// A closed store of the version before.
async fn of_previous_version(home: &Home) {
    let store = home.open_uncommitted();
    finish(&store, "a", "x").await;
    drop(store);
    home.shell()
        .execute_batch(
            "CREATE TABLE place (hash BLOB NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (hash, row)) WITHOUT ROWID;
             INSERT INTO place SELECT hash, rowid FROM record;
             ALTER TABLE meta RENAME TO now;
             CREATE TABLE meta (rowid INTEGER PRIMARY KEY CHECK (rowid = 1), seen_ms INTEGER NOT NULL,
                 indexed_row INTEGER NOT NULL, journal INTEGER NOT NULL, salt INTEGER NOT NULL);
             INSERT INTO meta SELECT 1, seen_ms, indexed_row, journal, salt FROM now;
             DROP TABLE now;
             DROP TABLE leaf;
             PRAGMA user_version = 3;",
        )
        .unwrap();
}

#[tokio::test]
async fn a_store_of_the_previous_version_is_upgraded() {
    for reads_first in [false, true] {
        let home = Home::new();
        of_previous_version(&home).await;
        if reads_first {
            let reader = FileStore::options().clock(home.clock.clone()).open_read_only(home.path()).unwrap();
            assert_eq!(reader.stats().await.unwrap().completed, 1);
        }
        let store = home.open_uncommitted();
        assert!(matches!(store.claim(&ask("a")).await.unwrap(), Claim::Replay { .. }));
        acquire(&store, "b").await;
        assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_unclosed_store_of_the_previous_version_is_refused() {
    let home = Home::new();
    of_previous_version(&home).await;
    fs::write(home.path().join("hapax.journal"), "HAPXJRN1").unwrap();
    let before = fs::read(home.database()).unwrap();
    for opened in [FileStore::open(home.path()), FileStore::open_read_only(home.path())] {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Incompatible);
        assert!(error.source().unwrap().to_string().contains("version 3"), "{error:?}");
    }
    assert_eq!(fs::read(home.database()).unwrap(), before);
}

#[tokio::test]
async fn a_vacuum_makes_the_file_smaller_after_a_sweep() {
    let home = Home::new();
    let store = home.open_uncommitted();
    let large = "x".repeat(20_000);
    for n in 0..100 {
        finish(&store, &format!("old-{n}"), &large).await;
    }
    home.clock.advance(crate::fixture::RETENTION);
    finish(&store, "young", "x").await;
    while store.sweep(1_000).await.unwrap().more {}
    drop(store);
    let before = fs::metadata(home.database()).unwrap().len();
    home.shell().execute_batch("VACUUM").unwrap();
    let after = fs::metadata(home.database()).unwrap().len();
    assert!(after < before / 10, "{before} bytes before, {after} after");
    let store = home.open_uncommitted();
    assert!(matches!(store.claim(&ask("young")).await.unwrap(), Claim::Replay { .. }));
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
}
