//! Full stores, and values that are too large.

use std::time::Duration;

use futures_util::future::{join_all, poll_immediate};
use hapax_core::{
    Claim, ClaimRequest, Deleted, Fenced, Lease, Lookup, Reason, Scope, ScopedKey, Store, StoreErrorKind,
};
use hapax_store_file::{FileStore, OUTCOME_BYTES_MAX, SCOPE_BYTES_MAX};

use crate::fixture::{Home, RETENTION, UNCERTAIN_RETENTION, acquire, ask, ask_for, done, finish, scoped};

const SIZE_MAX: u64 = 1 << 20;

/// Fills a small store until it refuses; returns the completed names, oldest first.
async fn fill(store: &FileStore, round: u32) -> Vec<String> {
    let result = done(&"x".repeat(8_000));
    let mut names = Vec::new();
    loop {
        let name = format!("fill-{round}-{}", names.len());
        let lease = match store.claim(&ask(&name)).await {
            Ok(Claim::Acquired(lease)) => lease,
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Full);
                return names;
            }
        };
        if let Err(error) = store.complete(&lease, &result, RETENTION).await {
            assert_eq!(error.kind(), StoreErrorKind::Full);
            assert!(matches!(store.get(&lease.id).await.unwrap(), Lookup::Found { .. }), "the claim stands");
            return names;
        }
        names.push(name);
    }
}

fn open_small(home: &Home) -> FileStore {
    FileStore::options().clock(home.clock.clone()).size_max(SIZE_MAX).open(home.path()).unwrap()
}

#[tokio::test]
async fn a_full_store_refuses_until_there_is_room() {
    let home = Home::new();
    let store = open_small(&home);
    let names = fill(&store, 1).await;
    assert!(names.len() > 50, "{} records fitted", names.len());
    assert!(std::fs::metadata(home.database()).unwrap().len() <= SIZE_MAX);
    let warnings = store.health().await.unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("allowed size")), "{warnings:?}");

    // Nothing acknowledged is lost, and replays continue.
    for name in &names {
        assert!(matches!(store.claim(&ask(name)).await.unwrap(), Claim::Replay { .. }), "{name}");
    }

    // Room by deleting.
    let Lookup::Found { record, .. } = store.get(&scoped(&names[0]).id).await.unwrap() else { panic!() };
    assert_eq!(store.delete(&record.key.id, record.fence.nonce).await.unwrap(), Deleted::Applied);
    finish(&store, "after a deletion", "x").await;

    // Room by sweeping.
    fill(&store, 2).await;
    home.clock.advance(RETENTION + Duration::from_secs(1));
    let swept = store.sweep(1000).await.unwrap();
    assert!(swept.expired as usize >= names.len());
    let again = fill(&store, 3).await;
    assert!(again.len() > 50, "{} records fitted again", again.len());
}

/// Fills a small store with open claims until it refuses, many at a time while they fit.
async fn fill_with_claims(store: &FileStore) -> Vec<(ClaimRequest, Lease)> {
    let mut opened = Vec::new();
    let mut names = 0..;
    for together in [256, 16, 1] {
        let mut full = false;
        while !full {
            let asks: Vec<_> =
                names.by_ref().take(together).map(|n: u32| ask(&format!("open-{n}"))).collect();
            let claims = join_all(asks.iter().map(|ask| store.claim(ask))).await;
            for (ask, claim) in asks.iter().zip(claims) {
                match claim {
                    Ok(Claim::Acquired(lease)) => opened.push((ask.clone(), lease)),
                    Ok(other) => panic!("{other:?}"),
                    Err(error) => {
                        assert_eq!(error.kind(), StoreErrorKind::Full);
                        full = true;
                    }
                }
            }
        }
    }
    opened
}

#[tokio::test]
async fn a_full_store_can_be_opened_again() {
    let home = Home::new();
    let store = open_small(&home);
    for n in 0..20 {
        finish(&store, &format!("done-{n}"), "result").await;
    }
    let opened = fill_with_claims(&store).await;
    assert!(opened.len() > 1000, "{} claims fitted", opened.len());
    drop(store);

    let store = open_small(&home);
    assert_eq!(store.stats().await.unwrap().uncertain, opened.len() as u64);
    for (claimed, lease) in opened.iter().step_by(100) {
        let claim = store.claim(&ask_for(claimed.key.clone())).await.unwrap();
        assert_eq!(claim, Claim::Uncertain { fence: lease.fence, reason: Reason::Restarted });
    }
    for n in 0..20 {
        let claim = store.claim(&ask(&format!("done-{n}"))).await.unwrap();
        assert!(matches!(claim, Claim::Replay { .. }), "done-{n}");
    }
    // The limit holds again, and a sweep makes room.
    let mut fitted = 0;
    while store.claim(&ask(&format!("new-{fitted}"))).await.is_ok() {
        fitted += 1;
        assert!(fitted < opened.len(), "the limit does not hold");
    }
    home.clock.advance(UNCERTAIN_RETENTION + RETENTION);
    while store.sweep(1000).await.unwrap().more {}
    assert!(fill_with_claims(&store).await.len() > 1000);
}

#[tokio::test]
async fn a_batch_without_room_takes_few_commits() {
    let home = Home::new();
    let store = open_small(&home);
    let opened = fill_with_claims(&store).await;
    let asks: Vec<_> = (0..100).map(|n| ask(&format!("new-{n}"))).collect();
    let before = store.activity().commits;
    let held = home.shell();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut claims: Vec<_> = asks.iter().map(|ask| store.claim(ask)).collect();
    let mut renewals: Vec<_> = opened.iter().take(asks.len()).map(|(_, lease)| store.renew(lease)).collect();
    for (claim, renewal) in claims.iter_mut().zip(&mut renewals) {
        assert!(poll_immediate(claim).await.is_none());
        assert!(poll_immediate(renewal).await.is_none());
    }
    held.execute_batch("ROLLBACK").unwrap();

    let claims = join_all(claims).await;
    assert!(claims.iter().any(|claim| claim.is_err()));
    for error in claims.into_iter().filter_map(Result::err) {
        assert_eq!(error.kind(), StoreErrorKind::Full);
    }
    for renewal in join_all(renewals).await {
        assert_eq!(renewal.unwrap(), Fenced::Applied);
    }
    // The writer may have taken the first few before the rest came.
    let commits = store.activity().commits - before;
    assert!(commits <= 4, "{commits} commits");
}

#[tokio::test]
async fn operations_without_need_for_room_succeed_in_a_full_batch() {
    let home = Home::new();
    let store = open_small(&home);
    let names = fill(&store, 1).await;
    // Enough claims that some do not fit, with a replay and a deletion in the same batch.
    let Lookup::Found { record, .. } = store.get(&scoped(&names[1]).id).await.unwrap() else { panic!() };
    let result = done(&"x".repeat(100_000));
    let opened = acquire_any(&store, &names).await;
    let replay = ask(&names[0]);
    let held = home.shell();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut completions: Vec<_> =
        opened.iter().map(|lease| store.complete(lease, &result, RETENTION)).collect();
    for completion in &mut completions {
        assert!(poll_immediate(completion).await.is_none());
    }
    let (mut replay, mut delete) = (store.claim(&replay), store.delete(&record.key.id, record.fence.nonce));
    assert!(poll_immediate(&mut replay).await.is_none());
    assert!(poll_immediate(&mut delete).await.is_none());
    held.execute_batch("ROLLBACK").unwrap();

    for completion in join_all(completions).await {
        assert_eq!(completion.unwrap_err().kind(), StoreErrorKind::Full);
    }
    assert!(matches!(replay.await.unwrap(), Claim::Replay { .. }));
    assert_eq!(delete.await.unwrap(), Deleted::Applied);
}

/// Makes room for a few claims and takes them.
async fn acquire_any(store: &FileStore, names: &[String]) -> Vec<Lease> {
    let Lookup::Found { record, .. } = store.get(&scoped(&names[2]).id).await.unwrap() else { panic!() };
    assert_eq!(store.delete(&record.key.id, record.fence.nonce).await.unwrap(), Deleted::Applied);
    vec![acquire(store, "open-1").await, acquire(store, "open-2").await]
}

#[tokio::test]
async fn an_outcome_beyond_the_limit_is_refused_and_the_claim_stands() {
    let home = Home::new();
    let store = home.open();
    let lease = acquire(&store, "a").await;
    let error =
        store.complete(&lease, &done(&"x".repeat(OUTCOME_BYTES_MAX + 1)), RETENTION).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TooLarge);
    assert_eq!(store.complete(&lease, &done("small"), RETENTION).await.unwrap(), Fenced::Applied);
}

#[tokio::test]
async fn a_scope_beyond_the_limit_is_refused() {
    let home = Home::new();
    let store = home.open();
    let key = scoped("a");
    let wide = |bytes| ScopedKey { scope: Scope::new("o".repeat(bytes)), ..key.clone() };
    let error = store.claim(&ask_for(wide(SCOPE_BYTES_MAX + 1))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TooLarge);
    assert!(matches!(store.claim(&ask_for(wide(SCOPE_BYTES_MAX))).await.unwrap(), Claim::Acquired(_)));
}
