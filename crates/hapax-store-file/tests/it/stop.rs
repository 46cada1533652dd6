//! After a failure that nobody can judge the store stops, and nobody waits for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{join_all, poll_immediate};
use hapax_core::{Claim, Clock, Lookup, ManualClock, Query, Store, StoreErrorKind, Timestamp};
use hapax_store_file::FileStore;

use crate::fixture::{Home, acquire, ask, finish, look_up, scoped};

/// A clock that can be told to break, and takes the thread that asks it down.
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
async fn a_panic_in_the_writer_is_an_error_for_all_who_wait() {
    let home = Home::new();
    let broken = Arc::new(AtomicBool::new(false));
    let clock = BreakingClock { clock: home.clock.clone(), broken: Arc::clone(&broken) };
    let store = FileStore::options().clock(clock).open(home.path()).unwrap();
    finish(&store, "before", "x").await;
    broken.store(true, Ordering::SeqCst);
    // The one whose transaction broke does not know; those after it are not served.
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
async fn a_failed_commit_is_unknown_to_its_callers_and_stops_the_store() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "before", "x").await;
    let shell = home.shell();
    shell.execute_batch(FAIL_AT_COMMIT).unwrap();
    let asks: Vec<_> = (0..5).map(|n| ask(&format!("key-{n}"))).collect();
    let claims = join_all(asks.iter().map(|ask| store.claim(ask))).await;
    // Whoever shared the failed commit does not know; whoever came too late for it was not served.
    assert_eq!(claims[0].as_ref().unwrap_err().kind(), StoreErrorKind::Unknown);
    for claim in &claims {
        let kind = claim.as_ref().unwrap_err().kind();
        assert!(matches!(kind, StoreErrorKind::Unknown | StoreErrorKind::Stopped), "{kind:?}");
    }
    // The way is clear again, and the store stays shut all the same.
    shell.execute_batch("DROP TRIGGER fail_at_commit").unwrap();
    assert_eq!(store.claim(&ask("after")).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Stopped);
    drop((store, shell));

    let store = home.open();
    look_up(&store, &scoped("before").id).await;
    assert!(matches!(store.claim(&asks[0]).await.unwrap(), Claim::Acquired(_)), "the same nonce tells");
}

#[tokio::test]
async fn an_operation_that_fails_alone_fails_alone() {
    let home = Home::new();
    let store = home.open();
    let shell = home.shell();
    shell
        .execute_batch(&format!(
            "CREATE TRIGGER refuse AFTER INSERT ON record WHEN hex(new.hash) = upper('{}')
             BEGIN SELECT RAISE(ABORT, 'not this one'); END;",
            &scoped("refused").id.to_string()[..32]
        ))
        .unwrap();
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
