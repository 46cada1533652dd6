//! Leases: a claim holds for its lease, and for a full lease from every renewal.

use hapax_core::{Claim, Fenced, Lookup, Reason, RecordId, State, Status, Store, Timestamp};

use super::script::*;
use crate::rig::{Rig, Time};

/// an owner that renews in time keeps its claim.
pub async fn a_renewed_lease_holds_on(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "renewed");
    let lease = acquire(&*store, &first).await;
    for round in 0..3 {
        rig.advance(first.lease * 2 / 3).await;
        assert_eq!(store.renew(&lease).await.expect("renew answers"), Fenced::Applied, "round {round}");
        assert_busy(&claim(&*store, &takeover(&first)).await);
    }
}

/// a renewal extends the claim for the whole lease from now, not from its old end.
pub async fn a_renewal_counts_from_now(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "from now");
    let lease = acquire(&*store, &first).await;
    rig.advance(first.lease / 2).await;
    let before = record(&*store, &first.key.id).await;
    let (until_before, _) = lease_until(&*store, &first.key.id).await;
    store.renew(&lease).await.expect("renew answers");
    let (until, now) = lease_until(&*store, &first.key.id).await;
    assert!(until <= now.after(first.lease));
    if rig.facts().time == Time::Manual {
        assert_eq!(until, now.after(first.lease));
    }
    let after = record(&*store, &first.key.id).await;
    assert_eq!((after.created_at, after.updated_at), (before.created_at, before.updated_at));
    assert_eq!(
        after.expires_at.since(until),
        before.expires_at.since(until_before),
        "the uncertain retention counts from the owner's last renewal"
    );
}

/// a renewal may change the lease's length.
pub async fn a_renewal_may_be_longer(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "longer");
    let mut lease = acquire(&*store, &first).await;
    lease.length = first.lease * 3;
    assert_eq!(store.renew(&lease).await.expect("renew answers"), Fenced::Applied);
    rig.advance(first.lease * 2).await;
    assert_busy(&claim(&*store, &takeover(&first)).await);
}

/// an owner that renews late keeps its claim as long as no other call has touched it.
pub async fn a_lapsed_lease_may_be_renewed(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "late");
    let lease = acquire(&*store, &first).await;
    rig.advance(first.lease * 2).await;
    assert_eq!(state(&*store, &first.key.id).await, Some(State::Uncertain));
    assert_eq!(store.renew(&lease).await.expect("renew answers"), Fenced::Applied);
    assert_eq!(state(&*store, &first.key.id).await, Some(State::InProgress));
    assert_busy(&claim(&*store, &takeover(&first)).await);
}

/// a record that is stored as uncertain is not renewed, and its owner may still end it.
pub async fn an_uncertain_record_stays_uncertain(rig: &impl Rig) {
    let store = rig.store();
    let (first, lease) = in_state(rig, &*store, State::Uncertain).await;
    let before = record(&*store, &first.key.id).await;
    assert_eq!(store.renew(&lease).await.expect("renew answers"), Fenced::Lost);
    assert_eq!(record(&*store, &first.key.id).await, before);
    assert_uncertain(claim(&*store, &retry(&first)).await, &lease, Reason::Panicked);
}

/// repeating one's own claim renews it.
pub async fn repeating_a_claim_renews_it(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "repeated");
    let lease = acquire(&*store, &first).await;
    rig.advance(first.lease * 2 / 3).await;
    assert_eq!(claim(&*store, &first).await, Claim::Acquired(lease));
    rig.advance(first.lease * 2 / 3).await;
    assert_busy(&claim(&*store, &takeover(&first)).await);
}

async fn lease_until(store: &dyn Store, id: &RecordId) -> (Timestamp, Timestamp) {
    match store.get(id).await.expect("get answers") {
        Lookup::Found { record, now } => match record.status {
            Status::InProgress { lease_until } => (lease_until, now),
            other => panic!("the record should be in progress, not {other:?}"),
        },
        other => panic!("the record should be there, not {other:?}"),
    }
}
