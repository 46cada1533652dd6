use std::time::Duration;

use hapax::MemoryStore;
use hapax_core::{Class, Lookup, ManualClock, Status};

use super::*;
use crate::commands::records::fixture::{LEASE, claim};

fn applied() -> Verdict {
    let recorded = Recorded::new(Class::Success, Format::FUNCTION, "1");
    Verdict::Applied { recorded, retention: Duration::from_secs(60) }
}

async fn look(store: &MemoryStore, id: &hapax_core::RecordId) -> Found {
    match store.get(id).await.unwrap() {
        Lookup::Found { record, now } => Found { record, now },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lapsed_claim_is_settled_with_the_result() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let lease = claim(&store, "k").await;
    clock.advance(LEASE);
    let found = look(&store, &lease.id).await;
    refuse_unless_uncertain(&found).unwrap();
    apply(&store, &found, applied()).await.unwrap();
    let after = look(&store, &lease.id).await;
    assert!(matches!(after.record.status, Status::Pinned { recorded } if recorded.payload == "1"));
}

#[tokio::test]
async fn an_owner_who_finishes_meanwhile_wins() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let lease = claim(&store, "k").await;
    clock.advance(LEASE);
    let found = look(&store, &lease.id).await;
    let done = Recorded::new(Class::Success, Format::FUNCTION, "2");
    store.complete(&lease, &done, Duration::from_secs(60)).await.unwrap();
    let refused = apply(&store, &found, applied()).await.unwrap_err();
    assert_eq!(refused.code(), Code::RecordChanged);
    let after = look(&store, &lease.id).await;
    assert!(matches!(after.record.status, Status::Pinned { recorded } if recorded.payload == "2"));
}

#[tokio::test]
async fn another_attempt_is_not_settled_by_a_look_at_the_first() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let lease = claim(&store, "k").await;
    clock.advance(LEASE);
    let found = look(&store, &lease.id).await;
    store.release(&lease, None).await.unwrap();
    let second = claim(&store, "k").await;
    clock.advance(LEASE);
    let refused = apply(&store, &found, Verdict::NotApplied).await.unwrap_err();
    assert_eq!(refused.code(), Code::RecordChanged);
    assert_eq!(look(&store, &lease.id).await.record.fence, second.fence);
}

#[tokio::test]
async fn only_an_uncertain_record_can_be_decided() {
    let store = MemoryStore::new();
    let lease = claim(&store, "k").await;
    let at_work = look(&store, &lease.id).await;
    assert_eq!(refuse_unless_uncertain(&at_work).unwrap_err().code(), Code::InProgress);
    store.release(&lease, None).await.unwrap();
    let released = look(&store, &lease.id).await;
    assert_eq!(refuse_unless_uncertain(&released).unwrap_err().code(), Code::NotUncertain);
}
