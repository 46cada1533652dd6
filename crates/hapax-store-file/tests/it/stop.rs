//! The store stops after failures with an unknown result, and no caller waits forever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{join_all, poll_immediate};
use hapax_core::{Claim, Clock, Fenced, Lookup, ManualClock, Query, Store, StoreErrorKind, Timestamp};
use hapax_store_file::FileStore;

use crate::fixture::{Home, RETENTION, acquire, ask, done, finish, look_up, scoped};

/// A clock that panics when it is broken.
#[derive(Debug)]
struct BreakingClock {
    clock: ManualClock,
    broken: Arc<AtomicBool>,
}

impl Clock for BreakingClock {
    fn now(&self) -> Timestamp {
        assert!(!self.broken.load(Ordering::SeqCst), "the clock broke");
        self.clock.now()
    }
}

#[tokio::test]
async fn a_panic_in_the_writer_fails_all_operations() {
    let home = Home::new();
    let broken = Arc::new(AtomicBool::new(false));
    let clock = BreakingClock { clock: home.clock.clone(), broken: Arc::clone(&broken) };
    let store = FileStore::options().clock(clock).open(home.path()).unwrap();
    finish(&store, "before", "x").await;
    broken.store(true, Ordering::SeqCst);
    // The operation in flight is unknown; later ones are refused.
    let error = store.claim(&ask("during")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unknown);
    broken.store(false, Ordering::SeqCst);
    assert_eq!(store.claim(&ask("after")).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.sweep(1).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.get(&scoped("before").id).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.list(&Query::default()).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.stats().await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Stopped);
    drop(store);

    let store = home.open();
    look_up(&store, &scoped("before").id).await;
    acquire(&store, "after").await;
}

/// Makes every commit with a new record in it fail at its very end.
const FAIL_AT_COMMIT: &str = "
    CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (parent INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER fail_at_commit AFTER INSERT ON record BEGIN INSERT INTO child VALUES (1); END;";

#[tokio::test]
async fn a_failed_commit_stops_the_store_and_loses_nothing() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "before", "x").await;
    store.stats().await.unwrap();
    let shell = home.shell();
    shell.execute_batch(FAIL_AT_COMMIT).unwrap();
    let asks: Vec<_> = (0..5).map(|n| ask(&format!("key-{n}"))).collect();
    for claim in join_all(asks.iter().map(|ask| store.claim(ask))).await {
        assert!(matches!(claim.unwrap(), Claim::Acquired(_)), "it is logged");
    }
    // The read fails, unless the writer has stopped the store before.
    let kind = store.stats().await.unwrap_err().kind();
    assert!(matches!(kind, StoreErrorKind::Unknown | StoreErrorKind::Stopped), "{kind:?}");
    // The store stays stopped although commits would succeed again.
    shell.execute_batch("DROP TRIGGER fail_at_commit").unwrap();
    assert_eq!(store.claim(&ask("after")).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Stopped);
    drop((store, shell));

    let store = home.open();
    look_up(&store, &scoped("before").id).await;
    for ask in &asks {
        assert!(matches!(store.claim(ask).await.unwrap(), Claim::Uncertain { .. }), "the claim was logged");
    }
}

/// Makes every write of a new record with this name fail.
fn refuse(shell: &rusqlite::Connection, name: &str) {
    let hash = &scoped(name).id.to_string()[..32];
    shell
        .execute_batch(&format!(
            "CREATE TRIGGER refuse AFTER INSERT ON record WHEN hex(new.hash) = upper('{hash}')
             BEGIN SELECT RAISE(ABORT, 'not this one'); END;"
        ))
        .unwrap();
}

#[tokio::test]
async fn an_acknowledged_record_that_cannot_be_written_stops_the_store_and_is_kept() {
    let home = Home::new();
    let store = home.open();
    let shell = home.shell();
    refuse(&shell, "refused");
    let asks: Vec<_> = ["first", "refused", "last"].into_iter().map(ask).collect();
    assert!(matches!(store.claim(&asks[0]).await.unwrap(), Claim::Acquired(_)));
    assert!(matches!(store.claim(&asks[1]).await.unwrap(), Claim::Acquired(_)));
    // Counting commits the records.
    assert!(store.stats().await.is_err());
    assert_eq!(store.claim(&asks[2]).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    drop(store);
    // Recovery cannot skip a logged record.
    let error = FileStore::options().clock(home.clock.clone()).open(home.path()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    shell.execute_batch("DROP TRIGGER refuse").unwrap();
    drop(shell);
    let store = home.open();
    for ask in &asks[..2] {
        assert!(matches!(store.claim(ask).await.unwrap(), Claim::Uncertain { .. }));
    }
}

#[tokio::test]
async fn a_failing_operation_does_not_fail_its_batch() {
    let home = Home::new();
    // With so little room, records are written before they are acknowledged.
    let options = FileStore::options().clock(home.clock.clone()).size_max(200 << 10);
    let store = options.open(home.path()).unwrap();
    let shell = home.shell();
    refuse(&shell, "refused");
    let asks: Vec<_> = ["first", "refused", "last"].into_iter().map(ask).collect();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut claims: Vec<_> = asks.iter().map(|ask| store.claim(ask)).collect();
    for claim in &mut claims {
        assert!(poll_immediate(claim).await.is_none());
    }
    shell.execute_batch("ROLLBACK").unwrap();
    let claims = join_all(claims).await;
    assert!(matches!(claims[0], Ok(Claim::Acquired(_))));
    assert_eq!(claims[1].as_ref().unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert!(matches!(claims[2], Ok(Claim::Acquired(_))));
    assert_eq!(store.get(&scoped("refused").id).await.unwrap(), Lookup::Absent);
}

#[tokio::test]
async fn a_large_outcome_is_written_before_it_is_acknowledged() {
    let home = Home::new();
    let store = home.open();
    let lease = acquire(&store, "a").await;
    home.shell()
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE INSERT ON outcome WHEN length(new.outcome) > 1000000
             BEGIN SELECT RAISE(ABORT, 'too large'); END;",
        )
        .unwrap();
    let error = store.complete(&lease, &done(&"x".repeat(2 << 20)), RETENTION).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert_eq!(store.complete(&lease, &done("small"), RETENTION).await.unwrap(), Fenced::Applied);
}
