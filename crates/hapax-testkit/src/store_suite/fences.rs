//! Fences: a write counts only while the record holds its attempt's nonce, and an outcome is final.

use hapax_core::{Fenced, Reason, State};

use super::script::*;
use crate::rig::Rig;

/// a write of an attempt that does not hold the record changes nothing, in every state.
pub async fn a_stranger_changes_nothing(rig: &impl Rig) {
    let store = rig.store();
    for state in State::ALL {
        let (ask, lease) = in_state(rig, &*store, state).await;
        let before = record(&*store, &ask.key.id).await;
        // The attempt number is for operators and downstream systems: only the nonce is the fence.
        let stranger = lease_of(&retry(&ask), lease.fence.attempt);
        for write in Write::ALL {
            let answer = write.send(rig, &*store, &stranger).await;
            assert_eq!(answer, Fenced::Lost, "{write:?} in state {state}");
            assert_eq!(record(&*store, &ask.key.id).await, before, "{write:?} in state {state}");
        }
    }
}

/// A write to a key without a record is lost and creates none.
pub async fn a_write_needs_a_record(rig: &impl Rig) {
    let store = rig.store();
    let absent = lease_of(&ask(rig, "absent"), 1);
    for write in Write::ALL {
        let answer = write.send(rig, &*store, &absent).await;
        assert_eq!(answer, Fenced::Lost, "{write:?}");
    }
    assert_eq!(found(&*store, &absent.id).await, None);
}

/// D-01: a pinned outcome does not change, also for the attempt that pinned it.
pub async fn an_outcome_is_final(rig: &impl Rig) {
    let store = rig.store();
    for state in [State::Completed, State::Failed] {
        let (ask, lease) = in_state(rig, &*store, state).await;
        let before = record(&*store, &ask.key.id).await;
        let other = outcome("something else");
        assert_eq!(complete(rig, &*store, &lease, &other).await, Fenced::Applied, "as the first time");
        assert_eq!(release(&*store, &lease).await, Fenced::Lost);
        assert_eq!(store.abandon(&lease, Reason::Declared).await.expect("abandon answers"), Fenced::Lost);
        assert_eq!(store.renew(&lease).await.expect("renew answers"), Fenced::Lost);
        assert_eq!(record(&*store, &ask.key.id).await, before, "in state {state}");
    }
}

/// an attempt that was released is over.
pub async fn a_released_attempt_is_over(rig: &impl Rig) {
    let store = rig.store();
    let (ask, lease) = in_state(rig, &*store, State::Released).await;
    let before = record(&*store, &ask.key.id).await;
    for write in Write::ALL {
        let answer = write.send(rig, &*store, &lease).await;
        let expected = if write == Write::Release { Fenced::Applied } else { Fenced::Lost };
        assert_eq!(answer, expected, "{write:?}");
        assert_eq!(record(&*store, &ask.key.id).await, before, "{write:?}");
    }
}

/// after a takeover the first owner can write nothing any more, and the second can write everything.
pub async fn a_takeover_fences_the_first_owner_out(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "fenced out");
    let late = acquire(&*store, &first).await;
    rig.advance(first.lease).await;
    let owner = acquire(&*store, &takeover(&first)).await;
    assert_eq!(owner.fence.attempt, 2);
    let before = record(&*store, &first.key.id).await;

    for write in Write::ALL {
        let answer = write.send(rig, &*store, &late).await;
        assert_eq!(answer, Fenced::Lost, "{write:?}");
        assert_eq!(record(&*store, &first.key.id).await, before, "{write:?}");
    }

    let done = outcome("by the second");
    assert_eq!(complete(rig, &*store, &owner, &done).await, Fenced::Applied);
    assert_eq!(complete(rig, &*store, &late, &outcome("by the first")).await, Fenced::Lost);
    assert_replays(&claim(&*store, &retry(&first)).await, &done);
}

/// Attempts count up through releases and takeovers, so that downstream systems can order them.
pub async fn attempts_count_up(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "counted");
    let lease = acquire(&*store, &first).await;
    release(&*store, &lease).await;
    let second = acquire(&*store, &retry(&first)).await;
    assert_eq!(second.fence.attempt, 2);
    rig.advance(first.lease).await;
    let third = acquire(&*store, &takeover(&first)).await;
    assert_eq!(third.fence.attempt, 3);
    release(&*store, &third).await;
    assert_eq!(acquire(&*store, &retry(&first)).await.fence.attempt, 4);
}
