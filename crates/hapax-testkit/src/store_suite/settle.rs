//! Settling: an uncertain record is settled once, for the attempt that the operator read.

use hapax_core::{Fenced, Nonce, Settled, State, Verdict};

use super::script::*;
use crate::rig::Rig;

/// D-07: a settlement as applied pins the outcome that was found.
pub async fn applied_pins_the_outcome(rig: &impl Rig) {
    let store = rig.store();
    let (ask, lease) = in_state(rig, &*store, State::Uncertain).await;
    let found = outcome("found in the books");
    let verdict = Verdict::Applied { recorded: found.clone(), retention: retention(rig) };
    let settled = store.settle(&ask.key.id, &settlement(lease.fence.nonce, verdict)).await;
    assert_eq!(settled.expect("settle answers"), Settled::Applied);
    assert_eq!(state(&*store, &ask.key.id).await, Some(State::Completed));
    assert_replays(&claim(&*store, &retry(&ask)).await, &found);
    rig.advance(retention(rig)).await;
    assert_eq!(acquire(&*store, &retry(&ask)).await.fence.attempt, 1, "kept for its retention, not longer");
}

/// D-07: a settlement as not applied frees the key, and attempts go on counting.
pub async fn not_applied_frees_the_key(rig: &impl Rig) {
    let store = rig.store();
    let (ask, lease) = in_state(rig, &*store, State::Uncertain).await;
    let settled = store.settle(&ask.key.id, &settlement(lease.fence.nonce, Verdict::NotApplied)).await;
    assert_eq!(settled.expect("settle answers"), Settled::Applied);
    assert_eq!(state(&*store, &ask.key.id).await, Some(State::Released));
    assert_eq!(acquire(&*store, &retry(&ask)).await.fence.attempt, 2);
}

/// D-07: a lapsed claim may be settled before another call has recorded the lapse.
pub async fn a_lapsed_claim_may_be_settled(rig: &impl Rig) {
    let store = rig.store();
    let ask = ask(rig, "unnoticed");
    let lease = acquire(&*store, &ask).await;
    rig.advance(ask.lease).await;
    let settled = store.settle(&ask.key.id, &settlement(lease.fence.nonce, Verdict::NotApplied)).await;
    assert_eq!(settled.expect("settle answers"), Settled::Applied);
    assert_eq!(state(&*store, &ask.key.id).await, Some(State::Released));
}

/// D-07: a settlement fences out the attempt that was settled.
pub async fn a_settlement_fences_the_owner_out(rig: &impl Rig) {
    let store = rig.store();
    let applied = Verdict::Applied { recorded: outcome("settled"), retention: retention(rig) };
    for (verdict, name) in [(applied, "applied"), (Verdict::NotApplied, "not applied")] {
        let ask = ask(rig, name);
        let lease = acquire(&*store, &ask).await;
        rig.advance(ask.lease).await;
        let settled = store.settle(&ask.key.id, &settlement(lease.fence.nonce, verdict)).await;
        assert_eq!(settled.expect("settle answers"), Settled::Applied);
        let before = record(&*store, &ask.key.id).await;
        for write in Write::ALL {
            assert_eq!(write.send(rig, &*store, &lease).await, Fenced::Lost, "{write:?} after {name}");
            assert_eq!(record(&*store, &ask.key.id).await, before, "{write:?} after {name}");
        }
    }
}

/// D-07: only an uncertain record is settled; the answer names the state of any other.
pub async fn only_an_uncertain_record_is_settled(rig: &impl Rig) {
    let store = rig.store();
    for state in State::ALL.into_iter().filter(|state| *state != State::Uncertain) {
        let (ask, lease) = in_state(rig, &*store, state).await;
        let before = record(&*store, &ask.key.id).await;
        let settled = store.settle(&ask.key.id, &settlement(lease.fence.nonce, Verdict::NotApplied)).await;
        assert_eq!(settled.expect("settle answers"), Settled::NotUncertain(state));
        assert_eq!(record(&*store, &ask.key.id).await, before, "in state {state}");
    }
    let absent = key("absent").id;
    let settled = store.settle(&absent, &settlement(Nonce::random(), Verdict::NotApplied)).await;
    assert_eq!(settled.expect("settle answers"), Settled::Absent);
    assert_eq!(found(&*store, &absent).await, None);
}

/// D-07: a settlement of an attempt that is no longer the record's is refused.
pub async fn another_attempt_is_not_settled(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "moved on");
    let looked_at = acquire(&*store, &first).await;
    rig.advance(first.lease).await;
    acquire(&*store, &takeover(&first)).await;
    rig.advance(first.lease).await;
    let before = record(&*store, &first.key.id).await;
    let verdict = Verdict::Applied { recorded: outcome("of the first"), retention: retention(rig) };
    let settled = store.settle(&first.key.id, &settlement(looked_at.fence.nonce, verdict)).await;
    assert_eq!(settled.expect("settle answers"), Settled::Changed);
    assert_eq!(record(&*store, &first.key.id).await, before);
}
