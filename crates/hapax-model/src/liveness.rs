//! L1 and L2: liveness once faults stop.
//!
//! The model has cycles (a claim can be renewed for ever), so "eventually" cannot be checked on its paths. Instead every
//! reachable state is run to completion under one fair schedule: executors finish, owners first, and leases lapse.
//! Requests in flight may be delivered first; that is another reachable state, checked as well. So termination is
//! reachable from every state.

use crate::protocol::Protocol;
use crate::slot::{Phase, Slot};
use crate::state::{Executor, Op, State};
use crate::steps::StoreAnswer;

/// The attempt of a caller that arrives after all executors finished.
const LAST_NONCE: u8 = 7;

/// L1: no executor waits for ever, no claim stays in progress, and a live owner that still holds the record gets its
/// outcome pinned.
pub(crate) fn all_terminate(protocol: &Protocol, state: &State) -> bool {
    let owner = live_owner(state);
    let mut state = state.clone();
    finish_executors(protocol, &mut state);
    let is_pinned_by = |owner| state.slot.is_some_and(|slot| slot.phase == Phase::Pinned { value: owner });
    if !owner.is_none_or(is_pinned_by) {
        return false;
    }
    state.slot = state.slot.map(|slot| slot.ticked());
    let idle = state.executors.iter().all(|executor| *executor == Executor::Idle);
    idle && !state.slot.is_some_and(|slot| slot.is_live())
}

/// L2: one more caller, alone, ends with the outcome pinned, unless the attempts are used up.
pub(crate) fn outcome_gets_pinned(protocol: &Protocol, state: &State) -> bool {
    let mut state = state.clone();
    finish_executors(protocol, &mut state);
    state.slot = state.slot.map(|slot| slot.ticked());
    let other = state.slot.is_some_and(|slot| slot.other);
    if let StoreAnswer::Acquired { nonce, attempt } = protocol.0.claim(&mut state, LAST_NONCE, other) {
        if protocol.effect_is_outside() {
            state.ghost.effect(nonce, attempt);
        }
        protocol.0.complete(&mut state, nonce);
    }
    let attempts_max = protocol.0.bounds.attempts_max;
    let is_done = |slot: Slot| match slot.phase {
        Phase::Pinned { .. } => true,
        Phase::InProgress { .. } | Phase::Uncertain => u32::from(slot.attempt) >= attempts_max,
        Phase::Released => false,
    };
    state.slot.is_some_and(is_done)
}

/// The attempt that works on its effect or its completion while the record still holds its nonce.
fn live_owner(state: &State) -> Option<u8> {
    let slot = state.slot.filter(|slot| slot.is_open())?;
    match state.executors[state.executor_of(slot.nonce)?] {
        Executor::Holding { nonce, .. } | Executor::Completing { nonce } => Some(nonce),
        Executor::Idle | Executor::Claiming { .. } => None,
    }
}

/// Runs every executor to completion, owners before executors that may have to wait for them.
fn finish_executors(protocol: &Protocol, state: &mut State) {
    let is_claiming = |executor| matches!(executor, Executor::Claiming { .. });
    for claiming in [false, true] {
        for executor in 0..protocol.0.bounds.executors {
            if is_claiming(state.executors[executor]) == claiming {
                finish(protocol, state, executor);
            }
        }
    }
}

/// Delivers requests and answers of one executor until it is idle; a busy answer lets the lease lapse.
fn finish(protocol: &Protocol, state: &mut State, executor: usize) {
    // Wait, claim, complete; plus spare rounds, so that a defect that needs a second round is not taken for a deadlock.
    const ROUNDS_MAX: usize = 5;
    for _ in 0..ROUNDS_MAX {
        if matches!(state.executors[executor], Executor::Holding { .. }) && protocol.effect_is_outside() {
            protocol.effect(state, executor);
        }
        let (op, nonce) = match state.executors[executor] {
            Executor::Idle => return,
            Executor::Claiming { nonce } => (Op::Claim, nonce),
            Executor::Holding { nonce, .. } | Executor::Completing { nonce } => (Op::Complete, nonce),
        };
        if protocol.deliver(state, op, nonce, true) == StoreAnswer::Busy {
            state.slot = state.slot.map(|slot| slot.ticked());
        }
    }
}
