//! Ambiguous writes: the caller does not learn the outcome, or sends the same call twice concurrently. The same call
//! again with the same nonce has the outcome of the first.

use hapax_core::{Claim, Deleted, Fenced, Reason, Settled, State, Store, StoreErrorKind, Verdict};

use super::script::*;
use crate::rig::Rig;
use crate::{Fault, Faulty, Op, Plan};

/// The two things that may have happened when the outcome is unknown.
const AMBIGUITIES: [Fault; 2] = [Fault::ErrorBefore(StoreErrorKind::Unknown), Fault::AnswerLost];

/// whether the claim was applied or not, the same claim again is the first attempt.
pub async fn an_ambiguous_claim_is_repeated(rig: &impl Rig) {
    for fault in AMBIGUITIES {
        let store = faulty(rig, Op::Claim, fault);
        let ask = ask(rig, fault.name());
        assert!(store.claim(&ask).await.is_err_and(|error| error.is_unknown()));
        assert_eq!(claim(&store, &ask).await, Claim::Acquired(lease_of(&ask, 1)), "{}", fault.name());
        assert_busy(&claim(&store, &retry(&ask)).await);
    }
}

/// D-04: whether the write was applied or not, the same write again is applied.
pub async fn an_ambiguous_write_is_repeated(rig: &impl Rig) {
    let writes = [
        (Write::Renew, Op::Renew, State::InProgress),
        (Write::Complete, Op::Complete, State::Completed),
        (Write::Release, Op::Release, State::Released),
        (Write::Abandon, Op::Abandon, State::Uncertain),
    ];
    for (write, op, expected) in writes {
        for fault in AMBIGUITIES {
            let store = faulty(rig, op, fault);
            let ask = ask(rig, &format!("{write:?} {}", fault.name()));
            let lease = acquire(&store, &ask).await;
            let told = write.try_send(rig, &store, &lease).await;
            assert!(told.is_err_and(|error| error.is_unknown()));
            assert_eq!(write.send(rig, &store, &lease).await, Fenced::Applied, "{write:?} {}", fault.name());
            assert_eq!(state(&store, &ask.key.id).await, Some(expected));
        }
    }
}

/// D-07: whether the settlement was applied or not, the same settlement again is applied.
pub async fn an_ambiguous_settlement_is_repeated(rig: &impl Rig) {
    for fault in AMBIGUITIES {
        let store = faulty(rig, Op::Settle, fault);
        let ask = ask(rig, fault.name());
        let lease = acquire(&store, &ask).await;
        store.abandon(&lease, Reason::Declared).await.expect("abandon answers");
        let settlement = settlement(lease.fence.nonce, Verdict::NotApplied);
        let told = store.settle(&ask.key.id, &settlement).await;
        assert!(told.is_err_and(|error| error.is_unknown()));
        let again = store.settle(&ask.key.id, &settlement).await.expect("settle answers");
        assert_eq!(again, Settled::Applied, "{}", fault.name());
        assert_eq!(state(&store, &ask.key.id).await, Some(State::Released));
    }
}

/// D-07: whether the record was removed or not, it is removed after the same deletion again.
pub async fn an_ambiguous_deletion_is_repeated(rig: &impl Rig) {
    for fault in AMBIGUITIES {
        let store = faulty(rig, Op::Delete, fault);
        let ask = ask(rig, fault.name());
        let lease = acquire(&store, &ask).await;
        complete(rig, &store, &lease, &outcome("done")).await;
        let told = store.delete(&ask.key.id, lease.fence.nonce).await;
        assert!(told.is_err_and(|error| error.is_unknown()));
        let again = store.delete(&ask.key.id, lease.fence.nonce).await.expect("delete answers");
        assert!(matches!(again, Deleted::Applied | Deleted::Absent), "{}: {again:?}", fault.name());
        assert_eq!(found(&store, &ask.key.id).await, None);
    }
}

/// one claim that a driver sent twice is one claim, whichever copy arrives first.
pub async fn a_claim_sent_twice_concurrently_is_one_claim(rig: &impl Rig) {
    let store = rig.store();
    for round in 0..20 {
        let ask = ask(rig, &format!("twice {round}"));
        let (first, second) = tokio::join!(store.claim(&ask), store.claim(&ask));
        let expected = Claim::Acquired(lease_of(&ask, 1));
        assert_eq!(first.expect("claim answers"), expected);
        assert_eq!(second.expect("claim answers"), expected);
    }
}

/// D-04: one completion that a driver sent twice is one completion, and both copies are answered as applied.
pub async fn a_completion_sent_twice_concurrently_is_one(rig: &impl Rig) {
    let store = rig.store();
    for round in 0..20 {
        let ask = ask(rig, &format!("twice {round}"));
        let lease = acquire(&*store, &ask).await;
        let done = outcome("done");
        let (first, second) = tokio::join!(
            store.complete(&lease, &done, retention(rig)),
            store.complete(&lease, &done, retention(rig))
        );
        assert_eq!(first.expect("complete answers"), Fenced::Applied);
        assert_eq!(second.expect("complete answers"), Fenced::Applied);
        assert_replays(&claim(&*store, &retry(&ask)).await, &done);
    }
}

/// The rig's store, where the first call of `op` meets `fault`.
fn faulty(rig: &impl Rig, op: Op, fault: Fault) -> Faulty {
    let store = Faulty::new(rig.store());
    store.set_plan(Plan::new().at_nth(op, 1, fault));
    store
}
