//! The properties by name. N must hold in every reachable state; R must be reachable, or the others hold vacuously.

use stateright::Property;

use super::consumer::{Consumer, Ended, Reply};
use super::state::{Message, Redriver, SUCCESS, State, Step, WORKERS, Worker};
use super::world::World;
use crate::slot::DEAD_LETTER;

pub(crate) fn all() -> Vec<Property<World>> {
    vec![
        Property::always("N1", |_, state: &State| !state.ghost.accepted || is_kept(state)),
        Property::always("N2", |_, state: &State| !state.ghost.unproven),
        Property::always("N3", |_, state: &State| !state.ghost.was_dead || is_kept(state)),
        Property::always("N4", all_ends),
        Property::sometimes("R1", |_, state: &State| is_over(state, SUCCESS) && !state.ghost.was_dead),
        Property::sometimes("R2", |_, state: &State| is_over(state, DEAD_LETTER)),
        Property::sometimes("R3", |_, state: &State| state.ghost.redriven && is_over(state, SUCCESS)),
        Property::sometimes("R4", |_, state: &State| state.ghost.answered_from_cache),
    ]
}

/// Whether the broker holds the event or its outcome is recorded.
fn is_kept(state: &State) -> bool {
    state.is_held() || state.finished().is_some()
}

/// Whether the broker is empty and the record is finished with this value.
fn is_over(state: &State, value: u8) -> bool {
    state.ghost.accepted && !state.is_held() && state.finished() == Some(value)
}

/// N4. The model has cycles (a worker can crash for ever), so "eventually" cannot be checked on its paths. Instead every
/// reachable state is run to its end under one fair schedule without faults.
fn all_ends(world: &World, state: &State) -> bool {
    // Every message takes a claim, a run, a completion and an acknowledgement, and up to four steps more when it is settled
    // or redriven. Spare rounds, so that a slow schedule is not taken for a deadlock.
    const ROUNDS_MAX: usize = 100;
    let mut state = state.clone();
    for _ in 0..ROUNDS_MAX {
        if state.redriver != Redriver::Idle {
            world.redrive(&mut state, Reply::Received);
        }
        let idle = state.workers.iter().all(|worker| *worker == Worker::Idle);
        if idle && !state.is_held() {
            let is_open = state.slot.is_some_and(|slot| slot.is_open());
            return !is_open && (!state.ghost.accepted || state.finished().is_some());
        }
        for worker in 0..WORKERS {
            step(world, &mut state, worker);
        }
        // A claim whose owner crashed lapses.
        if !state.workers.iter().any(|worker| owns_record(&state, worker)) {
            state.slot = state.slot.map(|slot| slot.ticked());
        }
    }
    false
}

/// The next step of a worker, without a fault.
fn step(world: &World, state: &mut State, worker: usize) {
    match state.workers[worker] {
        Worker::Idle => {
            let held = (0u8..).zip(state.copies).find(|(_, copy)| matches!(copy, Message::Held { .. }));
            if let Some((copy, _)) = held {
                Consumer::receive(state, worker, copy);
            }
        }
        Worker::Busy(hand) => match hand.step {
            Step::Running { .. } => world.consumer.end(state, worker, Ended::Done),
            Step::Acknowledging => Consumer::acknowledge(state, worker, true),
            _ => world.consumer.call(state, worker, Reply::Received),
        },
    }
}

fn owns_record(state: &State, worker: &Worker) -> bool {
    let Worker::Busy(hand) = worker else { return false };
    match hand.step {
        Step::Running { nonce, .. } | Step::Recording { nonce, .. } => {
            state.slot.is_some_and(|slot| slot.nonce == nonce)
        }
        _ => false,
    }
}
