//! Deleting: an operator may remove a record without a running attempt, if it has not changed since it was read.

use hapax_core::{Caching, Deleted, Nonce, State};

use super::script::*;
use crate::rig::Rig;

/// D-07: a record without a running attempt is removed, and the key is new.
pub async fn a_record_without_a_running_attempt_is_removed(rig: &impl Rig) {
    let store = rig.store();
    for state in State::ALL.into_iter().filter(|state| *state != State::InProgress) {
        let (ask, lease) = in_state(rig, &*store, state).await;
        let deleted = store.delete(&ask.key.id, lease.fence.nonce).await.expect("delete answers");
        assert_eq!(deleted, Deleted::Applied, "in state {state}");
        assert_eq!(found(&*store, &ask.key.id).await, None, "in state {state}");
        assert_eq!(acquire(&*store, &retry(&ask)).await.fence.attempt, 1, "in state {state}");
    }
}

/// D-07: a claim in progress is not removed until its lease has lapsed.
pub async fn a_claim_in_progress_is_not_removed(rig: &impl Rig) {
    let store = rig.store();
    let ask = ask(rig, "at work");
    let lease = acquire(&*store, &ask).await;
    let before = record(&*store, &ask.key.id).await;
    let deleted = store.delete(&ask.key.id, lease.fence.nonce).await.expect("delete answers");
    assert_eq!(deleted, Deleted::InProgress);
    assert_eq!(record(&*store, &ask.key.id).await, before);
    rig.advance(ask.lease).await;
    let deleted = store.delete(&ask.key.id, lease.fence.nonce).await.expect("delete answers");
    assert_eq!(deleted, Deleted::Applied);
    assert_eq!(found(&*store, &ask.key.id).await, None);
}

/// D-07: a record that has changed since it was read stays.
pub async fn a_changed_record_stays(rig: &impl Rig) {
    let store = rig.store();
    for state in State::ALL {
        let (ask, _) = in_state(rig, &*store, state).await;
        let before = record(&*store, &ask.key.id).await;
        let deleted = store.delete(&ask.key.id, Nonce::random()).await.expect("delete answers");
        assert_eq!(deleted, Deleted::Changed, "in state {state}");
        assert_eq!(record(&*store, &ask.key.id).await, before, "in state {state}");
    }
}

/// D-07: an absent record is reported as absent.
pub async fn an_absent_record_is_absent(rig: &impl Rig) {
    let deleted = rig.store().delete(&key("absent").id, Nonce::random()).await;
    assert_eq!(deleted.expect("delete answers"), Deleted::Absent);
}

/// D-07: a store with one owner counts deletions, so that no cache replays a deleted record; a record that stays is
/// not counted.
pub async fn a_deletion_is_counted(rig: &impl Rig) {
    let store = rig.store();
    let Caching::Owned(deletions) = store.caching() else { return };
    for state in State::ALL.into_iter().filter(|state| *state != State::InProgress) {
        let (ask, lease) = in_state(rig, &*store, state).await;
        let id = ask.key.id;
        let before = deletions.of(&id);
        let deleted = store.delete(&id, Nonce::random()).await.expect("delete answers");
        assert_eq!((deleted, deletions.of(&id)), (Deleted::Changed, before), "in state {state}");
        let deleted = store.delete(&id, lease.fence.nonce).await.expect("delete answers");
        assert_eq!(deleted, Deleted::Applied, "in state {state}");
        assert_ne!(deletions.of(&id), before, "in state {state}");
    }
}
