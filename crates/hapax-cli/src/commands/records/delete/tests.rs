use hapax::MemoryStore;
use hapax_core::Lookup;

use super::*;
use crate::commands::records::fixture::claim;

async fn look(store: &MemoryStore, id: &hapax_core::RecordId) -> Found {
    match store.get(id).await.unwrap() {
        Lookup::Found { record, now } => Found { record, now },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_claim_at_work_is_not_deleted() {
    let store = MemoryStore::new();
    let lease = claim(&store, "k").await;
    let found = look(&store, &lease.id).await;
    assert_eq!(apply(&store, &found).await.unwrap_err().code(), Code::InProgress);
    look(&store, &lease.id).await;
}

#[tokio::test]
async fn another_attempt_is_not_deleted_by_a_look_at_the_first() {
    let store = MemoryStore::new();
    let lease = claim(&store, "k").await;
    let found = look(&store, &lease.id).await;
    store.release(&lease, None).await.unwrap();
    claim(&store, "k").await;
    assert_eq!(apply(&store, &found).await.unwrap_err().code(), Code::RecordChanged);
}

#[tokio::test]
async fn what_is_gone_meanwhile_is_told() {
    let store = MemoryStore::new();
    let lease = claim(&store, "k").await;
    store.release(&lease, None).await.unwrap();
    let found = look(&store, &lease.id).await;
    apply(&store, &found).await.unwrap();
    assert_eq!(apply(&store, &found).await.unwrap_err().code(), Code::RecordChanged);
}

#[test]
fn every_deletion_that_can_run_something_again_says_so() {
    for state in [State::Uncertain, State::Completed, State::Failed] {
        assert!(consequence(state).contains("RUNS THE OPERATION"), "{state}");
    }
}
