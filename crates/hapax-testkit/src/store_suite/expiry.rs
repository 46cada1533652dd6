//! Expiry: a finished record replays for its retention, counted from completion, and then the key is new.

use std::time::Duration;

use hapax_core::store::TOMBSTONE_RETENTION;
use hapax_core::{Claim, ClaimRequest, Fenced, Reason};

use super::script::*;
use crate::rig::{Removal, Rig, Time};

/// A hundred years: longer than any store keeps a record, and still a valid date.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// D-01: until its retention ends a finished record is replayed, and from then on the key is new.
pub async fn a_finished_record_is_replayed_for_its_retention(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "kept");
    let lease = acquire(&*store, &first).await;
    let done = outcome("done");
    complete(rig, &*store, &lease, &done).await;
    rig.advance(retention(rig) * 3 / 4).await;
    assert_replays(&claim(&*store, &retry(&first)).await, &done);

    rig.advance(retention(rig) / 4).await;

    let lease = acquire(&*store, &retry(&first)).await;
    assert_eq!(lease.fence.attempt, 1);
    assert_busy(&claim(&*store, &retry(&first)).await);
}

/// D-01: retention counts from completion, however long the execution took.
pub async fn retention_counts_from_completion(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "slow");
    let lease = acquire(&*store, &first).await;
    rig.advance(retention(rig)).await;
    let done = outcome("done");
    complete(rig, &*store, &lease, &done).await;
    let kept = record(&*store, &first.key.id).await;
    assert_eq!(kept.expires_at, kept.updated_at.after(retention(rig)));
    rig.advance(retention(rig) * 3 / 4).await;
    assert_replays(&claim(&*store, &retry(&first)).await, &done);
}

/// A repeated completion does not extend the retention.
pub async fn a_repeated_completion_does_not_extend_retention(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "repeated");
    let lease = acquire(&*store, &first).await;
    let done = outcome("done");
    complete(rig, &*store, &lease, &done).await;
    rig.advance(retention(rig) / 2).await;
    assert_eq!(complete(rig, &*store, &lease, &done).await, Fenced::Applied);
    rig.advance(retention(rig) / 2).await;
    acquire(&*store, &retry(&first)).await;
}

/// A retention of a hundred years is stored.
pub async fn a_long_retention_is_kept(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "for ever");
    let lease = acquire(&*store, &first).await;
    let done = outcome("done");
    assert_eq!(store.complete(&lease, &done, FOR_EVER).await.expect("complete answers"), Fenced::Applied);
    let kept = record(&*store, &first.key.id).await;
    assert_eq!(kept.expires_at, kept.updated_at.after(FOR_EVER));
    assert_replays(&claim(&*store, &retry(&first)).await, &done);
}

/// An uncertain record does not expire without a sweep, which counts it.
pub async fn an_uncertain_record_does_not_expire(rig: &impl Rig) {
    if rig.facts().removal == Removal::ByServer {
        return;
    }
    let store = rig.store();
    let first = ClaimRequest { uncertain_retention: rig.facts().lease * 2, ..ask(rig, "unsettled") };
    let lease = acquire(&*store, &first).await;
    rig.advance(first.uncertain_retention * 2).await;
    assert_uncertain(claim(&*store, &retry(&first)).await, &lease, Reason::Lapsed);
    assert_uncertain(claim(&*store, &retry(&first)).await, &lease, Reason::Lapsed);
}

/// A renewed claim holds also beyond the uncertain retention of its record.
pub async fn a_renewed_claim_outlives_its_retention(rig: &impl Rig) {
    let store = rig.store();
    let first = ClaimRequest { uncertain_retention: rig.facts().lease, ..ask(rig, "long run") };
    let lease = acquire(&*store, &first).await;
    for _ in 0..3 {
        rig.advance(first.lease * 2 / 3).await;
        assert_eq!(store.renew(&lease).await.expect("renew answers"), Fenced::Applied);
    }
    assert_busy(&claim(&*store, &retry(&first)).await);
    let done = outcome("done");
    assert_eq!(complete(rig, &*store, &lease, &done).await, Fenced::Applied);
    assert_replays(&claim(&*store, &retry(&first)).await, &done);
}

/// a tombstone is kept for a while, and then attempts count from one again.
pub async fn a_tombstone_is_forgotten(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "tombstone");
    let lease = acquire(&*store, &first).await;
    release(&*store, &lease).await;
    let tombstone = record(&*store, &first.key.id).await;
    assert_eq!(tombstone.expires_at, tombstone.updated_at.after(TOMBSTONE_RETENTION));
    // Ten minutes are too long to wait out on a real clock.
    if rig.facts().time == Time::Manual {
        rig.advance(TOMBSTONE_RETENTION).await;
        let answer = claim(&*store, &first).await;
        assert_eq!(answer, Claim::Acquired(lease), "the delayed claim is a new claim");
    }
}
