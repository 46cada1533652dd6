//! Lapse: claims whose owner is gone or late.

use hapax_core::{ClaimRequest, Fenced, Query, Reason, State};

use super::script::*;
use crate::rig::Rig;

/// at most once: every claim of a lapsed one is uncertain, and nothing runs again.
pub async fn a_lapsed_claim_is_uncertain(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "lapsed");
    let lease = acquire(&*store, &first).await;
    rig.advance(first.lease).await;
    for _ in 0..3 {
        assert_uncertain(claim(&*store, &retry(&first)).await, &lease, Reason::Lapsed);
    }
    let record = record(&*store, &first.key.id).await;
    assert_eq!((record.state(), record.fence), (State::Uncertain, lease.fence));
}

/// A lapsed claim is shown as uncertain before a call has recorded that.
pub async fn a_lapsed_claim_is_shown_as_uncertain(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "shown");
    acquire(&*store, &first).await;
    rig.advance(first.lease).await;
    assert_eq!(state(&*store, &first.key.id).await, Some(State::Uncertain));
    let query = Query { states: vec![State::Uncertain], ..Query::default() };
    let page = store.list(&query).await.expect("list answers");
    assert_eq!(page.records.iter().map(|record| record.key.id).collect::<Vec<_>>(), [first.key.id]);
    let query = Query { states: vec![State::InProgress], ..Query::default() };
    assert!(store.list(&query).await.expect("list answers").records.is_empty());
    let stats = store.stats().await.expect("stats answers");
    assert_eq!((stats.in_progress, stats.uncertain), (0, 1));
}

/// at least once: a lapsed claim is taken over by a new attempt.
pub async fn a_lapsed_claim_is_taken_over_when_asked(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "taken over");
    acquire(&*store, &first).await;
    rig.advance(first.lease).await;
    let second = takeover(&first);
    let lease = acquire(&*store, &second).await;
    assert_eq!(lease.fence, lease_of(&second, 2).fence);
    assert_eq!(state(&*store, &first.key.id).await, Some(State::InProgress));
    assert_busy(&claim(&*store, &takeover(&first)).await);
}

/// so is a claim that is already stored as uncertain.
pub async fn an_uncertain_record_is_taken_over_when_asked(rig: &impl Rig) {
    let store = rig.store();
    let (first, _) = in_state(rig, &*store, State::Uncertain).await;
    let lease = acquire(&*store, &takeover(&first)).await;
    assert_eq!(lease.fence.attempt, 2);
}

/// an operation that kills every attempt is not retried for ever.
pub async fn takeovers_end_at_attempts_max(rig: &impl Rig) {
    let store = rig.store();
    let first = ClaimRequest { attempts_max: 2, ..ask(rig, "deadly") };
    acquire(&*store, &first).await;
    rig.advance(first.lease).await;
    let last = acquire(&*store, &takeover(&first)).await;
    assert_eq!(last.fence.attempt, 2);
    rig.advance(first.lease).await;
    for _ in 0..2 {
        assert_uncertain(claim(&*store, &takeover(&first)).await, &last, Reason::Lapsed);
    }
}

/// D-04: a late owner may still complete, whether or not the lapse was recorded.
pub async fn a_late_completion_by_the_owner_is_applied(rig: &impl Rig) {
    let store = rig.store();
    for noticed in [false, true] {
        let first = ask(rig, if noticed { "late, noticed" } else { "late, unnoticed" });
        let lease = acquire(&*store, &first).await;
        rig.advance(first.lease * 2).await;
        if noticed {
            assert_uncertain(claim(&*store, &retry(&first)).await, &lease, Reason::Lapsed);
        }
        let done = outcome("late but true");
        assert_eq!(complete(rig, &*store, &lease, &done).await, Fenced::Applied, "noticed: {noticed}");
        assert_replays(&claim(&*store, &retry(&first)).await, &done);
    }
}

/// a late owner may still release.
pub async fn a_late_release_by_the_owner_is_applied(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "late release");
    let lease = acquire(&*store, &first).await;
    rig.advance(first.lease * 2).await;
    assert_uncertain(claim(&*store, &retry(&first)).await, &lease, Reason::Lapsed);
    assert_eq!(release(&*store, &lease).await, Fenced::Applied);
    assert_eq!(acquire(&*store, &retry(&first)).await.fence.attempt, 2);
}

/// an owner may abandon its claim as uncertain before its lease lapses, and its first reason stays.
pub async fn an_abandoned_claim_is_uncertain_immediately(rig: &impl Rig) {
    let store = rig.store();
    for reason in Reason::ALL {
        let first = ask(rig, reason.name());
        let lease = acquire(&*store, &first).await;
        assert_eq!(store.abandon(&lease, reason).await.expect("abandon answers"), Fenced::Applied);
        assert_eq!(state(&*store, &first.key.id).await, Some(State::Uncertain));
        assert_uncertain(claim(&*store, &retry(&first)).await, &lease, reason);
        store.abandon(&lease, Reason::Declared).await.expect("abandon answers");
        assert_uncertain(claim(&*store, &retry(&first)).await, &lease, reason);
    }
}
