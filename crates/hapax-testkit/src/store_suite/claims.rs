//! Claims: one owner per key, and a true answer for every other claim.

use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Class, Fence, Fenced, Fingerprint, Format, Lease, Recorded, Scope, State, Status,
};

use super::script::*;
use crate::rig::{Rig, Time};

/// an unused key is acquired, and the record holds its owner and its fingerprint.
pub async fn a_fresh_key_is_acquired(rig: &impl Rig) {
    let store = rig.store();
    let ask = ask(rig, "fresh");
    assert_eq!(found(&*store, &ask.key.id).await, None);

    let lease = acquire(&*store, &ask).await;

    let fence = Fence { nonce: ask.nonce, attempt: 1 };
    assert_eq!(lease, Lease { id: ask.key.id, fence, length: ask.lease });
    let record = record(&*store, &ask.key.id).await;
    assert_eq!((&record.key, record.fingerprint, record.fence), (&ask.key, ask.fingerprint, fence));
    assert_eq!(record.state(), State::InProgress);
    assert_eq!(record.created_at, record.updated_at);
    assert_eq!(record.expires_at, record.created_at.after(ask.uncertain_retention));
    assert_eq!(record.status, Status::InProgress { lease_until: record.created_at.after(ask.lease) });
}

/// while an attempt holds a key, other claims are busy and change nothing.
pub async fn a_claimed_key_is_busy(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "busy");
    acquire(&*store, &first).await;
    let before = record(&*store, &first.key.id).await;

    for second in [retry(&first), takeover(&first)] {
        let answer = claim(&*store, &second).await;
        let Claim::Busy { lease_left } = answer else { panic!("the key should be busy, not {answer:?}") };
        assert!(lease_left > Duration::ZERO && lease_left <= first.lease, "{lease_left:?} left");
        if rig.facts().time == Time::Manual {
            assert_eq!(lease_left, first.lease);
        }
    }

    assert_eq!(record(&*store, &first.key.id).await, before);
}

/// F-01: another fingerprint is a mismatch in every state but released, and takes precedence over the state.
pub async fn another_fingerprint_is_a_mismatch(rig: &impl Rig) {
    let store = rig.store();
    for state in [State::InProgress, State::Completed, State::Failed, State::Uncertain] {
        let (first, _) = in_state(rig, &*store, state).await;
        let before = record(&*store, &first.key.id).await;
        for second in [retry(&first), takeover(&first)] {
            let other = ClaimRequest { fingerprint: fingerprint("three socks"), ..second };
            assert_eq!(claim(&*store, &other).await, Claim::Mismatch, "in state {state}");
        }
        assert_eq!(record(&*store, &first.key.id).await, before, "in state {state}");
    }
}

/// F-01: fingerprints of different algorithms cannot be compared; that is neither a match nor a mismatch.
pub async fn another_algorithm_is_not_compared(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "algorithm");
    acquire(&*store, &first).await;
    let fingerprint = Fingerprint::from_parts(200, *first.fingerprint.digest());

    let answer = claim(&*store, &ClaimRequest { fingerprint, ..retry(&first) }).await;

    assert_eq!(answer, Claim::Unreadable);
}

/// D-01: every claim of a finished key replays its outcome, byte for byte.
pub async fn a_finished_key_replays(rig: &impl Rig) {
    let store = rig.store();
    let every_byte: Vec<u8> = (0..=255).collect();
    let outcomes = [
        Recorded::new(Class::Success, Format::FUNCTION, ""),
        Recorded::new(Class::Error, Format::OPERATOR, "no stock"),
        Recorded::new(Class::Success, Format(200), every_byte.clone()).with_meta(every_byte),
    ];
    for (number, done) in outcomes.iter().enumerate() {
        let first = ask(rig, &format!("replay {number}"));
        let lease = acquire(&*store, &first).await;
        assert_eq!(complete(rig, &*store, &lease, done).await, Fenced::Applied);
        let before = record(&*store, &first.key.id).await;
        assert_eq!(before.recorded(), Some(done));
        assert_eq!(before.state(), if done.class == Class::Error { State::Failed } else { State::Completed });

        for second in [retry(&first), takeover(&first), first.clone()] {
            let answer = claim(&*store, &second).await;
            assert_replays(&answer, done);
            let Claim::Replay { remaining, .. } = answer else { unreachable!("it is a replay") };
            assert!(remaining <= retention(rig), "{remaining:?} left");
            if rig.facts().time == Time::Manual {
                assert_eq!(remaining, retention(rig));
            }
        }
        assert_eq!(record(&*store, &first.key.id).await, before);
    }
}

/// D-01, F-01: a store recalls without a claim only what a claim would replay now.
pub async fn only_replays_are_recalled(rig: &impl Rig) {
    let store = rig.store();
    let all = [State::InProgress, State::Completed, State::Failed, State::Uncertain, State::Released];
    let mut used = Vec::new();
    for state in all {
        let (first, _) = in_state(rig, &*store, state).await;
        let id = &first.key.id;
        let recalled = store.recall(id, &first.fingerprint);
        if recalled.is_some() {
            let found = record(&*store, id).await;
            assert!(state.is_terminal() && state != State::Released, "{state} is no result");
            assert_eq!(recalled.as_ref(), found.recorded(), "in state {state}");
        }
        assert_eq!(store.recall(id, &fingerprint("three socks")), None, "in state {state}");
        used.push(first);
    }

    rig.advance(retention(rig)).await;
    for gone in used {
        assert_eq!(store.recall(&gone.key.id, &gone.fingerprint), None, "it is over");
    }
}

/// a released key is free immediately, also for a corrected request, and attempts go on counting.
pub async fn a_released_key_is_claimed_again(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "released");
    let lease = acquire(&*store, &first).await;
    let answered = outcome("try later");
    assert_eq!(store.release(&lease, Some(&answered)).await.expect("release answers"), Fenced::Applied);
    let tombstone = record(&*store, &first.key.id).await;
    assert_eq!(tombstone.status, Status::Released { answered: Some(answered) });

    let mended = ClaimRequest { fingerprint: fingerprint("two blue socks"), ..retry(&first) };
    let lease = acquire(&*store, &mended).await;

    assert_eq!(lease.fence, Fence { nonce: mended.nonce, attempt: 2 });
    let record = record(&*store, &first.key.id).await;
    assert_eq!((record.fingerprint, record.created_at), (mended.fingerprint, tombstone.created_at));
}

/// One key in different scopes names different operations, and each scope is stored unchanged.
pub async fn scopes_keep_keys_apart(rig: &impl Rig) {
    let store = rig.store();
    let scopes = [
        Scope::new("POST /orders"),
        Scope::new("POST /orders/'; -- %_\\ \u{1f9e6}"),
        Scope::new("POST /orders").in_namespace("stäging"),
        Scope::new("POST /orders").principal("alice"),
        Scope::new("POST /orders").principal("bob"),
        Scope::new(""),
    ];
    for scope in scopes {
        let ask = ClaimRequest { key: key_in(scope, "one key"), ..ask(rig, "one key") };
        let lease = acquire(&*store, &ask).await;
        assert_eq!(lease.fence.attempt, 1);
        assert_eq!(record(&*store, &ask.key.id).await.key, ask.key);
    }
}
