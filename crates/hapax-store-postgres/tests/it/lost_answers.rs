//! Connections that break while a statement is in flight: repeating the statement resolves what happened.

use std::time::Duration;

use hapax_core::{Claim, Fenced, Reason, Store, StoreErrorKind};
use hapax_testkit::servers::PostgresServer;

use crate::counting::Counting;
use crate::fixture::{RETENTION, acquire, ask, done, options, replayed};

/// More replies than any call needs.
const ALL: usize = usize::MAX;

#[tokio::test]
async fn a_statement_with_a_lost_reply_is_sent_again() {
    let server = PostgresServer::shared();
    let between = Counting::before(server.port());
    let store = options(&between.url()).connect().await.unwrap();
    acquire(&store, "warm").await;

    between.lose(2);
    let lease = acquire(&store, "claimed").await;
    assert_eq!((lease.fence.attempt, between.left_to_lose()), (1, 0));
    between.lose(1);
    assert_eq!(store.renew(&lease).await.unwrap(), Fenced::Applied);
    between.lose(1);
    assert_eq!(store.complete(&lease, &done("once"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(between.left_to_lose(), 0);
    assert_eq!(replayed(&store, "claimed").await, done("once"));

    let released = acquire(&store, "released").await;
    between.lose(1);
    assert_eq!(store.release(&released, None).await.unwrap(), Fenced::Applied);
    let abandoned = acquire(&store, "abandoned").await;
    between.lose(1);
    assert_eq!(store.abandon(&abandoned, Reason::Declared).await.unwrap(), Fenced::Applied);
}

#[tokio::test]
async fn an_unknown_result_is_resolved_by_repeating_the_call() {
    let server = PostgresServer::shared();
    let between = Counting::before(server.port());
    let patient = options(&between.url());
    let hasty = patient.clone().timeout(Duration::from_millis(300)).connect().await.unwrap();
    let patient = patient.connect().await.unwrap();
    acquire(&patient, "warm").await;

    let ask = ask("claimed");
    between.lose(ALL);
    assert_eq!(hasty.claim(&ask).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    between.lose(0);
    let Claim::Acquired(lease) = patient.claim(&ask).await.unwrap() else { panic!("it was applied") };
    assert_eq!(lease.fence.attempt, 1);

    between.lose(ALL);
    let lost = hasty.complete(&lease, &done("once"), RETENTION).await.unwrap_err();
    assert_eq!(lost.kind(), StoreErrorKind::Unknown);
    between.lose(0);
    assert_eq!(patient.complete(&lease, &done("once"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(replayed(&patient, "claimed").await, done("once"));
}
