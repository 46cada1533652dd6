//! L1 and L2: what becomes of a state once nothing fails any more.
//!
//! The model has cycles (a claim can be renewed for ever), so "eventually" cannot be read off its paths.
//! Instead every reachable state is healed by one fair schedule: executors finish what they are doing, owners
//! first, and leases run out. Requests that are still under way may arrive before; that is another reachable
//! state, healed as well. So there is no state from which the end is out of reach.

use crate::protocol::Protocol;
use crate::slot::{Phase, Slot};
use crate::state::{Executor, Op, State};
use crate::steps::Told;

/// The attempt of somebody who asks once everything is quiet.
const LAST_NONCE: u8 = 7;

/// L1: no executor waits for ever, no claim stays in progress, and an owner that lives and still holds the
/// record brings its outcome home.
pub(crate) fn ends(protocol: &Protocol, state: &State) -> bool {
    let owner = living_owner(state);
    let mut state = state.clone();
    finish_executors(protocol, &mut state);
    let brought_home = |owner| state.slot.is_some_and(|slot| slot.phase == Phase::Pinned { value: owner });
    if !owner.is_none_or(brought_home) {
        return false;
    }
    state.slot = state.slot.map(|slot| slot.ticked());
    let idle = state.executors.iter().all(|executor| *executor == Executor::Idle);
    idle && !state.slot.is_some_and(|slot| slot.is_live())
}

/// L2: one more caller, alone, ends with the outcome pinned, unless the attempts are used up.
pub(crate) fn ends_done(protocol: &Protocol, state: &State) -> bool {
    let mut state = state.clone();
    finish_executors(protocol, &mut state);
    state.slot = state.slot.map(|slot| slot.ticked());
    let other = state.slot.is_some_and(|slot| slot.other);
    if let Told::Acquired { nonce, attempt } = protocol.0.claim(&mut state, LAST_NONCE, other) {
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
fn living_owner(state: &State) -> Option<u8> {
    let slot = state.slot.filter(|slot| slot.is_open())?;
    match state.executors[state.executor_of(slot.nonce)?] {
        Executor::Holding { nonce, .. } | Executor::Completing { nonce } => Some(nonce),
        Executor::Idle | Executor::Claiming { .. } => None,
    }
}

/// Lets every executor finish, owners before those who may have to wait for them.
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

/// Answers one executor until it is idle; when it is told to wait, a lease runs out.
fn finish(protocol: &Protocol, state: &mut State, executor: usize) {
    // Wait, claim, complete; once more, so that a defect that needs a second round is not mistaken for a trap.
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
        if protocol.deliver(state, op, nonce, true) == Told::Busy {
            state.slot = state.slot.map(|slot| slot.ticked());
        }
    }
}
