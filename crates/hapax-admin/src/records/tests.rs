use std::time::Duration;

use hapax::MemoryStore;
use hapax_core::{Class, Format, ManualClock, Recorded, Status};

use super::fixture::{LEASE, claim};
use super::*;

fn applied() -> Verdict {
    let recorded = Recorded::new(Class::Success, Format::FUNCTION, "1");
    Verdict::Applied { recorded, retention: Duration::from_secs(60) }
}

struct Room {
    clock: ManualClock,
    store: Arc<MemoryStore>,
    records: Records,
}

impl Room {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        let records = Records::standalone(store.clone(), "memory:");
        Self { clock, store, records }
    }

    async fn version(&self, id: &RecordId) -> String {
        self.records.show(id, Payload::Hidden).await.unwrap().record.version
    }

    async fn stored(&self, id: &RecordId) -> Status {
        self.records.find(id).await.unwrap().record.status
    }
}

#[tokio::test]
async fn a_lapsed_claim_is_settled_with_the_result() {
    let room = Room::new();
    let lease = claim(&*room.store, "k").await;
    let version = room.version(&lease.id).await;
    room.clock.advance(LEASE);
    assert_eq!(room.version(&lease.id).await, version, "a lapse is nobody's change");
    room.records.settle(&lease.id, &version, applied()).await.unwrap();
    assert!(matches!(room.stored(&lease.id).await, Status::Pinned { recorded } if recorded.payload == "1"));
    assert_ne!(room.version(&lease.id).await, version);
}

#[tokio::test]
async fn an_owner_who_finishes_meanwhile_wins() {
    let room = Room::new();
    let lease = claim(&*room.store, "k").await;
    room.clock.advance(LEASE);
    let version = room.version(&lease.id).await;
    let done = Recorded::new(Class::Success, Format::FUNCTION, "2");
    room.store.complete(&lease, &done, Duration::from_secs(60)).await.unwrap();
    let refused = room.records.settle(&lease.id, &version, applied()).await.unwrap_err();
    assert_eq!(refused.code(), Code::RecordChanged);
    let refused = room.records.delete(&lease.id, &version).await.unwrap_err();
    assert_eq!(refused.code(), Code::RecordChanged, "another version would be deleted");
    assert!(matches!(room.stored(&lease.id).await, Status::Pinned { recorded } if recorded.payload == "2"));
}

#[tokio::test]
async fn another_attempt_is_not_changed_by_a_look_at_the_first() {
    let room = Room::new();
    let lease = claim(&*room.store, "k").await;
    room.clock.advance(LEASE);
    let version = room.version(&lease.id).await;
    room.store.release(&lease, None).await.unwrap();
    let second = claim(&*room.store, "k").await;
    room.clock.advance(LEASE);
    for refused in [
        room.records.settle(&lease.id, &version, Verdict::NotApplied).await,
        room.records.delete(&lease.id, &version).await,
    ] {
        assert_eq!(refused.unwrap_err().code(), Code::RecordChanged);
    }
    assert_eq!(room.records.find(&lease.id).await.unwrap().record.fence, second.fence);
}

#[tokio::test]
async fn a_claim_at_work_is_neither_decided_nor_deleted() {
    let room = Room::new();
    let lease = claim(&*room.store, "k").await;
    let version = room.version(&lease.id).await;
    for refused in [
        room.records.settle(&lease.id, &version, applied()).await,
        room.records.delete(&lease.id, &version).await,
    ] {
        assert_eq!(refused.unwrap_err().code(), Code::InProgress);
    }
    assert!(matches!(room.stored(&lease.id).await, Status::InProgress { .. }));
}

#[tokio::test]
async fn what_is_not_uncertain_is_not_decided() {
    let room = Room::new();
    let lease = claim(&*room.store, "k").await;
    room.store.release(&lease, None).await.unwrap();
    let version = room.version(&lease.id).await;
    let refused = room.records.settle(&lease.id, &version, applied()).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotUncertain);
}

#[tokio::test]
async fn what_is_gone_is_told() {
    let room = Room::new();
    let lease = claim(&*room.store, "k").await;
    room.store.release(&lease, None).await.unwrap();
    let version = room.version(&lease.id).await;
    room.records.delete(&lease.id, &version).await.unwrap();
    assert_eq!(room.records.delete(&lease.id, &version).await.unwrap_err().code(), Code::RecordMissing);
}
