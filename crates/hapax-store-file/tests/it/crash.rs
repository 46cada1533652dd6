//! What is on the disk at any moment is enough. A crash is a copy of the files, taken while the store is open.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use hapax_core::{Claim, Lookup, Reason, Store};
use hapax_store_file::FileStore;
use tempfile::TempDir;

use crate::fixture::{Home, acquire, ask, done, finish, scoped};

/// Copies a store's files by another process: closing them in this one would end the engine's own locks.
fn copy(home: &Home, to: &Path) {
    for name in ["hapax.db", "hapax.db-wal"] {
        let copied = Command::new("cp").arg(home.path().join(name)).arg(to).status().unwrap();
        assert!(copied.success(), "{name}");
    }
}

fn open(home: &Home, dir: &Path) -> FileStore {
    FileStore::options().clock(home.clock.clone()).open(dir).unwrap()
}

#[tokio::test]
async fn everything_acknowledged_is_in_the_files_at_once() {
    let home = Home::new();
    let store = home.open();
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
async fn a_torn_tail_costs_only_what_was_torn() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "whole", "x").await;
    let intact = fs::metadata(home.path().join("hapax.db-wal")).unwrap().len();
    finish(&store, "torn", "x").await;
    let all = fs::metadata(home.path().join("hapax.db-wal")).unwrap().len();
    assert!(all > intact);
    for cut in (intact..all).step_by(500) {
        let crashed = TempDir::new().unwrap();
        copy(&home, crashed.path());
        File::options().write(true).open(crashed.path().join("hapax.db-wal")).unwrap().set_len(cut).unwrap();
        let reopened = open(&home, crashed.path());
        assert!(matches!(reopened.claim(&ask("whole")).await.unwrap(), Claim::Replay { .. }), "cut at {cut}");
        // Never half of it.
        match reopened.get(&scoped("torn").id).await.unwrap() {
            Lookup::Absent | Lookup::Found { .. } => {}
            other => panic!("cut at {cut}: {other:?}"),
        }
        finish(&reopened, "next", "x").await;
    }
}

#[tokio::test]
async fn an_orderly_end_leaves_no_log() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    drop(store);
    assert!(!home.path().join("hapax.db-wal").exists());
}

#[tokio::test]
async fn a_crash_puts_the_clock_ahead_and_never_back() {
    let home = Home::new();
    let store = home.open();
    acquire(&store, "a").await;
    let crashed = TempDir::new().unwrap();
    copy(&home, crashed.path());
    let reopened = open(&home, crashed.path());
    let Lookup::Found { record, now } = reopened.get(&scoped("a").id).await.unwrap() else { panic!() };
    assert!(now >= record.created_at);
    assert!(now.since(record.created_at).as_secs() <= 1);
}
