//! Reopening a store.

use std::time::Duration;

use hapax_core::{Claim, Fenced, ManualClock, Reason, State, Status, Store};
use hapax_store_file::FileStore;

use crate::fixture::{Home, RETENTION, acquire, ask, done, finish, look_up, scoped};

#[tokio::test]
async fn keeps_acknowledged_records() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "done", "the result").await;
    let released = acquire(&store, "released").await;
    assert_eq!(store.release(&released, Some(&done("try again"))).await.unwrap(), Fenced::Applied);
    let before = [look_up(&store, &scoped("done").id).await, look_up(&store, &released.id).await];
    drop(store);

    let store = home.open();
    let after = [look_up(&store, &scoped("done").id).await, look_up(&store, &released.id).await];
    assert_eq!(before, after);
    match store.claim(&ask("done")).await.unwrap() {
        Claim::Replay { recorded, remaining } => {
            assert_eq!(recorded, done("the result"));
            assert_eq!(remaining, RETENTION);
        }
        other => panic!("expected a replay, got {other:?}"),
    }
}

#[tokio::test]
async fn claims_of_an_earlier_process_are_uncertain() {
    let home = Home::new();
    let store = home.open();
    let lease = acquire(&store, "open").await;
    finish(&store, "done", "x").await;
    drop(store);

    let store = home.open();
    let record = look_up(&store, &lease.id).await;
    assert_eq!(record.status, Status::Uncertain { reason: Reason::Restarted });
    assert_eq!(record.fence, lease.fence);
    assert_eq!(look_up(&store, &scoped("done").id).await.state(), State::Completed);
    let claim = store.claim(&ask("open")).await.unwrap();
    assert_eq!(claim, Claim::Uncertain { fence: lease.fence, reason: Reason::Restarted });
    // The owner may still complete its claim.
    assert_eq!(store.complete(&lease, &done("late"), RETENTION).await.unwrap(), Fenced::Applied);
}

#[tokio::test]
async fn a_clock_set_back_revives_nothing() {
    let home = Home::new();
    let store = home.open();
    let lease = acquire(&store, "a").await;
    store.complete(&lease, &done("x"), Duration::from_secs(60)).await.unwrap();
    home.clock.advance(Duration::from_secs(3600));
    acquire(&store, "b").await;
    drop(store);

    let store = FileStore::options().clock(ManualClock::new()).open(home.path()).unwrap();
    // "a" expired before "b" was claimed, and still has although the clock says otherwise.
    assert!(matches!(store.claim(&ask("a")).await.unwrap(), Claim::Acquired(_)));
}
