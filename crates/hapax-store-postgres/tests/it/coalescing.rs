//! Batching: one commit for many callers, one call per key in a batch, and no call harms another.

use std::sync::Arc;

use futures_util::future::join_all;
use hapax_core::{Claim, Fenced, Store};
use hapax_testkit::servers::PostgresServer;

use crate::counting::Counting;
use crate::fixture::{RETENTION, acquire, ask, connect, done, options};

/// The number of concurrent callers.
const CALLERS: usize = 100;

#[tokio::test]
async fn many_callers_share_a_few_round_trips() {
    let server = PostgresServer::shared();
    let counting = Counting::before(server.port());
    let store = options(&counting.url()).connect().await.unwrap();
    acquire(&store, "warm").await;
    counting.trips();
    let claiming = (0..CALLERS).map(|number| ask(&format!("order {number}")));
    let asks: Vec<_> = claiming.collect();
    let claims = join_all(asks.iter().map(|ask| store.claim(ask))).await;
    let leases: Vec<_> = claims
        .into_iter()
        .map(|claim| match claim.unwrap() {
            Claim::Acquired(lease) => lease,
            other => panic!("not acquired: {other:?}"),
        })
        .collect();
    // The first ones are sent at once; all others are queued and sent together.
    assert!(counting.trips() <= 4);
    let outcome = done("done");
    let completed = join_all(leases.iter().map(|lease| store.complete(lease, &outcome, RETENTION))).await;
    assert!(completed.into_iter().all(|answer| answer.unwrap() == Fenced::Applied));
    assert!(counting.trips() <= 4);
}

#[tokio::test]
async fn concurrent_claims_of_one_key_acquire_it_once() {
    let (_server, store) = connect().await;
    let asks: Vec<_> = (0..CALLERS).map(|_| ask("the same")).collect();
    let claims = join_all(asks.iter().map(|ask| store.claim(ask))).await;
    let acquired = claims.iter().filter(|claim| matches!(claim, Ok(Claim::Acquired(_)))).count();
    let busy = claims.iter().filter(|claim| matches!(claim, Ok(Claim::Busy { .. }))).count();
    assert_eq!((acquired, busy), (1, CALLERS - 1));
}

/// Batches of several processes over the same keys, each in its own order, do not deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_with_the_same_keys_do_not_deadlock() {
    let server = PostgresServer::shared();
    let first = options(&server.url());
    let schema = first.schema_name().to_owned();
    let mut stores = vec![Arc::new(first.connect().await.unwrap())];
    stores.push(Arc::new(options(&server.url()).schema(schema).connect().await.unwrap()));
    for round in 0..10 {
        let working = stores.iter().enumerate().map(|(turn, store)| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut names: Vec<String> = (0..CALLERS).map(|n| format!("{round} {n}")).collect();
                names.rotate_left(turn * CALLERS / 2);
                join_all(names.iter().map(async |name| match store.claim(&ask(name)).await.unwrap() {
                    Claim::Acquired(lease) => {
                        let written = store.complete(&lease, &done(name), RETENTION).await.unwrap();
                        assert_eq!(written, Fenced::Applied);
                        1
                    }
                    _ => 0,
                }))
                .await
                .into_iter()
                .sum::<usize>()
            })
        });
        let acquired: usize = join_all(working).await.into_iter().map(Result::unwrap).sum();
        assert_eq!(acquired, CALLERS, "each key once");
    }
    assert_eq!(server.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"), "0");
}
