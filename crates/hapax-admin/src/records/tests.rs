use std::time::Duration;

use hapax::MemoryStore;
use hapax_core::{Class, Format, ManualClock, Recorded, Status};

use super::fixture::{LEASE, claim};
use super::*;

fn applied() -> Verdict {
    let recorded = Recorded::new(Class::Success, Format::FUNCTION, "1");
    Verdict::Applied { recorded, retention: Duration::from_secs(60) }
}

struct Fixture {
    clock: ManualClock,
    store: Arc<MemoryStore>,
    records: Records,
}

impl Fixture {
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
    let fixture = Fixture::new();
    let lease = claim(&*fixture.store, "k").await;
    let version = fixture.version(&lease.id).await;
    fixture.clock.advance(LEASE);
    assert_eq!(fixture.version(&lease.id).await, version, "a lapse does not change the version");
    fixture.records.settle(&lease.id, &version, applied()).await.unwrap();
    assert!(
        matches!(fixture.stored(&lease.id).await, Status::Pinned { recorded } if recorded.payload == "1")
    );
    assert_ne!(fixture.version(&lease.id).await, version);
}

#[tokio::test]
async fn a_record_that_its_owner_completed_is_not_settled() {
    let fixture = Fixture::new();
    let lease = claim(&*fixture.store, "k").await;
    fixture.clock.advance(LEASE);
    let version = fixture.version(&lease.id).await;
    let done = Recorded::new(Class::Success, Format::FUNCTION, "2");
    fixture.store.complete(&lease, &done, Duration::from_secs(60)).await.unwrap();
    let refused = fixture.records.settle(&lease.id, &version, applied()).await.unwrap_err();
    assert_eq!(refused.code(), Code::RecordChanged);
    let refused = fixture.records.delete(&lease.id, &version).await.unwrap_err();
    assert_eq!(refused.code(), Code::RecordChanged, "another version would be deleted");
    assert!(
        matches!(fixture.stored(&lease.id).await, Status::Pinned { recorded } if recorded.payload == "2")
    );
}

#[tokio::test]
async fn a_record_of_a_later_attempt_is_not_changed() {
    let fixture = Fixture::new();
    let lease = claim(&*fixture.store, "k").await;
    fixture.clock.advance(LEASE);
    let version = fixture.version(&lease.id).await;
    fixture.store.release(&lease, None).await.unwrap();
    let second = claim(&*fixture.store, "k").await;
    fixture.clock.advance(LEASE);
    for refused in [
        fixture.records.settle(&lease.id, &version, Verdict::NotApplied).await,
        fixture.records.delete(&lease.id, &version).await,
    ] {
        assert_eq!(refused.unwrap_err().code(), Code::RecordChanged);
    }
    assert_eq!(fixture.records.find(&lease.id).await.unwrap().record.fence, second.fence);
}

#[tokio::test]
async fn a_record_in_progress_is_neither_settled_nor_deleted() {
    let fixture = Fixture::new();
    let lease = claim(&*fixture.store, "k").await;
    let version = fixture.version(&lease.id).await;
    for refused in [
        fixture.records.settle(&lease.id, &version, applied()).await,
        fixture.records.delete(&lease.id, &version).await,
    ] {
        assert_eq!(refused.unwrap_err().code(), Code::InProgress);
    }
    assert!(matches!(fixture.stored(&lease.id).await, Status::InProgress { .. }));
}

#[tokio::test]
async fn only_an_uncertain_record_is_settled() {
    let fixture = Fixture::new();
    let lease = claim(&*fixture.store, "k").await;
    fixture.store.release(&lease, None).await.unwrap();
    let version = fixture.version(&lease.id).await;
    let refused = fixture.records.settle(&lease.id, &version, applied()).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotUncertain);
}

#[tokio::test]
async fn a_missing_record_is_reported() {
    let fixture = Fixture::new();
    let lease = claim(&*fixture.store, "k").await;
    fixture.store.release(&lease, None).await.unwrap();
    let version = fixture.version(&lease.id).await;
    fixture.records.delete(&lease.id, &version).await.unwrap();
    assert_eq!(fixture.records.delete(&lease.id, &version).await.unwrap_err().code(), Code::RecordMissing);
}
