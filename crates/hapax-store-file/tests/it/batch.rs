//! Group commit, and callers that go away.

use std::sync::Arc;

use futures_util::future::{join_all, poll_immediate};
use hapax_core::{Claim, Fenced, Lookup, Store};
use hapax_store_file::{Activity, FileStore};

use crate::fixture::{Home, RETENTION, acquire, ask, done, finish, scoped};

/// Holds SQLite's lock, so that operations queue up for the writer.
fn hold(home: &Home) -> rusqlite::Connection {
    let shell = home.shell();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    shell
}

#[tokio::test]
async fn queued_operations_share_an_fsync() {
    let home = Home::new();
    let store = home.open();
    let asks: Vec<_> = (0..200).map(|n| ask(&format!("key-{n}"))).collect();
    let held = hold(&home);
    let mut claims: Vec<_> = asks.iter().map(|ask| store.claim(ask)).collect();
    for claim in &mut claims {
        assert!(poll_immediate(claim).await.is_none(), "nothing is acknowledged before it is durable");
    }
    held.execute_batch("ROLLBACK").unwrap();
    for claim in join_all(claims).await {
        assert!(matches!(claim.unwrap(), Claim::Acquired(_)));
    }
    let Activity { operations, commits } = store.activity();
    assert_eq!(operations, 200);
    // The writer may have taken the first few before the rest came.
    assert!(commits <= 2, "{commits} commits");
}

#[tokio::test]
async fn a_replay_commits_nothing() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    let before = store.activity();
    for _ in 0..5 {
        assert!(matches!(store.claim(&ask("a")).await.unwrap(), Claim::Replay { .. }));
    }
    let after = store.activity();
    assert_eq!((after.operations, after.commits), (before.operations + 5, before.commits));
}

#[tokio::test]
async fn one_batch_decides_in_order() {
    let home = Home::new();
    let store = home.open();
    let asks: Vec<_> = (0..50).map(|_| ask("the same")).collect();
    let held = hold(&home);
    let mut claims: Vec<_> = asks.iter().map(|ask| store.claim(ask)).collect();
    for claim in &mut claims {
        assert!(poll_immediate(claim).await.is_none());
    }
    held.execute_batch("ROLLBACK").unwrap();
    let claims = join_all(claims).await;
    let acquired = claims.iter().filter(|claim| matches!(claim, Ok(Claim::Acquired(_)))).count();
    let busy = claims.iter().filter(|claim| matches!(claim, Ok(Claim::Busy { .. }))).count();
    assert_eq!((acquired, busy), (1, 49));
}

#[tokio::test]
async fn callers_that_go_away_do_not_affect_others() {
    let home = Home::new();
    let store = home.open();
    let lease = acquire(&store, "dropped completion").await;
    let (result, claim) = (done("x"), ask("dropped claim"));
    let held = hold(&home);
    let mut dropped = vec![store.complete(&lease, &result, RETENTION)];
    assert!(poll_immediate(&mut dropped[0]).await.is_none());
    let mut dropped_claim = store.claim(&claim);
    assert!(poll_immediate(&mut dropped_claim).await.is_none());
    drop((dropped.pop(), dropped_claim));
    let stays = ask("stays");
    let mut stays = store.claim(&stays);
    assert!(poll_immediate(&mut stays).await.is_none());
    held.execute_batch("ROLLBACK").unwrap();

    assert!(matches!(stays.await.unwrap(), Claim::Acquired(_)));
    // Both were queued before the claim that was awaited, so both are applied.
    assert_eq!(store.complete(&lease, &result, RETENTION).await.unwrap(), Fenced::Applied);
    assert!(matches!(store.claim(&claim).await.unwrap(), Claim::Acquired(_)), "the same nonce again");
}

#[tokio::test]
async fn an_unpolled_future_does_nothing() {
    let home = Home::new();
    let store = home.open();
    drop(store.claim(&ask("a")));
    acquire(&store, "b").await;
    assert_eq!(store.get(&scoped("a").id).await.unwrap(), Lookup::Absent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn races_have_one_winner() {
    let home = Home::new();
    let store: Arc<FileStore> = Arc::new(home.open());
    for round in 0..20 {
        let name = format!("round-{round}");
        let claims = (0..16).map(|_| {
            let (store, ask) = (Arc::clone(&store), ask(&name));
            tokio::spawn(async move { store.claim(&ask).await.unwrap() })
        });
        let claims = join_all(claims).await;
        let won = claims.iter().filter(|claim| matches!(claim, Ok(Claim::Acquired(_)))).count();
        assert_eq!(won, 1, "{name}");
    }
}

#[tokio::test]
async fn a_store_may_be_dropped_in_a_runtime_with_queued_operations() {
    let home = Home::new();
    let store = home.open();
    let claim = ask("last");
    assert!(poll_immediate(store.claim(&claim)).await.is_none());
    // The operation is finished without its caller.
    drop(store);
    let store = home.open();
    assert!(matches!(store.get(&claim.key.id).await.unwrap(), Lookup::Found { .. }));
}
