//! Lost answers: a call that is repeated with the same nonce has the same answer, and a delayed copy has no effect
//! when it arrives.

use hapax_core::{Claim, Deleted, Fenced, Settled, State, Verdict};

use super::script::*;
use crate::rig::Rig;

/// the same claim again is the same claim, with the same attempt number.
pub async fn a_repeated_claim_is_the_same_claim(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "claim");
    let lease = acquire(&*store, &first).await;
    let before = record(&*store, &first.key.id).await;
    for _ in 0..3 {
        assert_eq!(claim(&*store, &first).await, Claim::Acquired(lease.clone()));
    }
    let after = record(&*store, &first.key.id).await;
    assert_eq!((after.fence, after.created_at), (before.fence, before.created_at));
}

/// so is the same takeover, and the same claim after a release.
pub async fn a_repeated_takeover_is_the_same_takeover(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "takeover");
    acquire(&*store, &first).await;
    rig.advance(first.lease).await;
    let second = takeover(&first);
    let lease = acquire(&*store, &second).await;
    assert_eq!(claim(&*store, &second).await, Claim::Acquired(lease.clone()));
    release(&*store, &lease).await;
    let third = retry(&first);
    let lease = acquire(&*store, &third).await;
    assert_eq!(lease.fence.attempt, 3);
    assert_eq!(claim(&*store, &third).await, Claim::Acquired(lease));
}

/// a repeated write is applied, and the record is as the first one left it.
pub async fn a_repeated_write_is_applied_once(rig: &impl Rig) {
    let store = rig.store();
    for write in Write::ALL {
        let ask = ask(rig, &format!("{write:?}"));
        let lease = acquire(&*store, &ask).await;
        assert_eq!(write.send(rig, &*store, &lease).await, Fenced::Applied, "{write:?}");
        let before = record(&*store, &ask.key.id).await;
        rig.advance(rig.facts().lease / 10).await;
        assert_eq!(write.send(rig, &*store, &lease).await, Fenced::Applied, "{write:?} again");
        let after = record(&*store, &ask.key.id).await;
        if write == Write::Renew {
            assert_eq!((after.fence, after.updated_at), (before.fence, before.updated_at));
        } else {
            assert_eq!(after, before, "{write:?} again");
        }
    }
}

/// D-07: a repeated settlement is applied, also when the record would refuse a new one by now.
pub async fn a_repeated_settlement_is_applied_once(rig: &impl Rig) {
    let store = rig.store();
    let applied = Verdict::Applied { recorded: outcome("found"), retention: retention(rig) };
    for (verdict, name) in [(applied, "applied"), (Verdict::NotApplied, "not applied")] {
        let ask = ask(rig, name);
        let lease = acquire(&*store, &ask).await;
        rig.advance(ask.lease).await;
        let settlement = settlement(lease.fence.nonce, verdict);
        let settled = store.settle(&ask.key.id, &settlement).await.expect("settle answers");
        assert_eq!(settled, Settled::Applied, "{name}");
        let before = record(&*store, &ask.key.id).await;
        let again = store.settle(&ask.key.id, &settlement).await.expect("settle answers");
        assert_eq!(again, Settled::Applied, "{name} again");
        assert_eq!(record(&*store, &ask.key.id).await, before, "{name} again");
    }
}

/// D-07: a repeated deletion finds the record absent.
pub async fn a_repeated_deletion_finds_nothing(rig: &impl Rig) {
    let store = rig.store();
    let (ask, lease) = in_state(rig, &*store, State::Completed).await;
    for expected in [Deleted::Applied, Deleted::Absent] {
        let deleted = store.delete(&ask.key.id, lease.fence.nonce).await;
        assert_eq!(deleted.expect("delete answers"), expected);
    }
}

/// a copy of a claim that arrives after its attempt ended acquires nothing.
pub async fn a_delayed_claim_does_not_revive_its_attempt(rig: &impl Rig) {
    let store = rig.store();
    for state in State::ALL.into_iter().filter(|state| *state != State::InProgress) {
        let (ask, _) = in_state(rig, &*store, state).await;
        let before = record(&*store, &ask.key.id).await;
        let answer = claim(&*store, &ask).await;
        assert!(!matches!(answer, Claim::Acquired(_)), "in state {state}: {answer:?}");
        assert_eq!(record(&*store, &ask.key.id).await, before, "in state {state}");
    }
}

/// copies of an owner's writes that arrive after another attempt began change nothing.
pub async fn delayed_writes_do_not_touch_the_next_attempt(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "next attempt");
    let over = acquire(&*store, &first).await;
    release(&*store, &over).await;
    acquire(&*store, &retry(&first)).await;
    let before = record(&*store, &first.key.id).await;
    for write in Write::ALL {
        assert_eq!(write.send(rig, &*store, &over).await, Fenced::Lost, "{write:?}");
        assert_eq!(record(&*store, &first.key.id).await, before, "{write:?}");
    }
    assert_busy(&claim(&*store, &first).await);
}

/// D-07: a copy of a settlement that arrives after another attempt began changes nothing.
pub async fn a_delayed_settlement_does_not_touch_the_next_attempt(rig: &impl Rig) {
    let store = rig.store();
    let (ask, lease) = in_state(rig, &*store, State::Uncertain).await;
    let settlement = settlement(lease.fence.nonce, Verdict::NotApplied);
    store.settle(&ask.key.id, &settlement).await.expect("settle answers");
    acquire(&*store, &retry(&ask)).await;
    rig.advance(ask.lease).await;
    let before = record(&*store, &ask.key.id).await;
    let again = store.settle(&ask.key.id, &settlement).await.expect("settle answers");
    assert_eq!(again, Settled::Changed);
    assert_eq!(record(&*store, &ask.key.id).await, before);
}
