//! Files of a store that are missing, old, or copied without the others are not half believed.

use std::error::Error;
use std::fs;
use std::path::Path;

use hapax_core::{Claim, Store, StoreErrorKind};
use hapax_store_file::{FileStore, OpenError};
use tempfile::TempDir;

use crate::crash::copy;
use crate::fixture::{Home, acquire, ask, finish};

/// Why the store in `dir` is not opened, by its owner or by a reader.
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

/// What a crash leaves of a store in which something is in the journal only.
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
async fn a_journal_that_is_missing_after_a_crash_is_noticed() {
    let home = Home::new();
    let dir = crashed(&home).await;
    fs::remove_file(dir.path().join("hapax.journal")).unwrap();
    let text = refused(&home, dir.path());
    assert!(text.contains("hapax.journal") && text.contains("missing"), "{text}");
    // It is not made by who was refused.
    assert!(!dir.path().join("hapax.journal").exists());
}

#[tokio::test]
async fn a_journal_that_is_empty_or_zeroed_after_a_crash_is_noticed() {
    for zeroed in [false, true] {
        let home = Home::new();
        let dir = crashed(&home).await;
        let journal = dir.path().join("hapax.journal");
        let length = if zeroed { fs::metadata(&journal).unwrap().len() as usize } else { 0 };
        fs::write(&journal, vec![0; length]).unwrap();
        let text = refused(&home, dir.path());
        assert!(text.contains("hapax.journal") && text.contains("not what was written"), "{text}");
    }
}

#[tokio::test]
async fn a_journal_that_is_older_than_the_database_is_noticed() {
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
async fn a_database_that_was_copied_without_its_journal_is_noticed() {
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
async fn a_store_that_lost_its_database_is_no_fresh_store() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "a", "x").await;
    drop(store);
    // All that an orderly end leaves beside it names the last owner.
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
async fn a_database_that_goes_back_behind_its_journal_is_noticed() {
    let home = Home::new();
    let store = home.open_uncommitted();
    finish(&store, "first", "x").await;
    drop(store);
    let older = fs::read(home.database()).unwrap();
    let dir = crashed(&home).await;
    fs::remove_file(dir.path().join("hapax.db-wal")).unwrap();
    fs::write(dir.path().join("hapax.db"), older).unwrap();
    let text = refused(&home, dir.path());
    assert!(text.contains("goes on from a later state"), "{text}");
}

#[tokio::test]
async fn the_database_of_a_store_that_ended_in_an_orderly_way_is_a_whole_copy() {
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
async fn all_files_of_a_crash_are_a_whole_copy() {
    let home = Home::new();
    let dir = crashed(&home).await;
    let store = FileStore::options().clock(home.clock.clone()).open(dir.path()).unwrap();
    for name in ["a", "b", "c"] {
        assert!(matches!(store.claim(&ask(name)).await.unwrap(), Claim::Replay { .. }), "{name}");
    }
}

#[tokio::test]
async fn a_store_whose_start_was_cut_short_is_opened_again() {
    let home = Home::new();
    drop(home.open_uncommitted());
    // The journal is there before the database says that it must be.
    let store = home.open_uncommitted();
    let journal = fs::read(home.path().join("hapax.journal")).unwrap();
    drop(store);
    fs::write(home.path().join("hapax.journal"), &journal[..journal.len().min(1024)]).unwrap();
    acquire(&home.open_uncommitted(), "a").await;
}

/// A store of the version before this one, as its owner left it.
async fn of_version_before(home: &Home) {
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
async fn a_store_of_the_version_before_is_brought_to_this_one() {
    for reads_first in [false, true] {
        let home = Home::new();
        of_version_before(&home).await;
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
async fn a_store_of_the_version_before_that_did_not_end_is_left_to_that_version() {
    let home = Home::new();
    of_version_before(&home).await;
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
async fn a_file_that_was_emptied_by_a_sweep_is_made_smaller_by_a_vacuum() {
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
