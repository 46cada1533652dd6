//! [`World`]: the stateright model, with the actions possible in each [`State`].

use hapax_core::transition::{self, Command};
use stateright::{Model, Property};

use super::EventBounds;
use super::consumer::{Consumer, Ended, Reply, decide};
use super::defect::Defect;
use super::properties;
use super::state::{Cached, Redriver, State, Step, WORKERS, Worker};
use crate::slot::{DEAD_LETTER, ID, NOW, Phase, nonce as nonce_of};

/// A broker, a store with a cache in front of it, workers and a redriver, for one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) bounds: EventBounds,
    pub(crate) consumer: Consumer,
}

/// One action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The producer publishes the event, once more after the first time.
    Publish,
    /// The broker delivers a message to an idle worker.
    Deliver { worker: usize, copy: u8 },
    /// A handler ends.
    End { worker: usize, ended: Ended },
    /// A worker calls cache or store.
    Call { worker: usize, reply: Reply },
    /// A worker acknowledges its message, or the acknowledgement is lost.
    Acknowledge { worker: usize, applied: bool },
    /// A worker crashes, or drops its delivery and starts over with it.
    Crash { worker: usize },
    /// The redriver reads the dead letter.
    Read,
    /// The redriver's next step: its message is published, and the confirmation is received or lost.
    Redrive { reply: Reply },
    /// The redriver crashes.
    CrashRedriver,
    /// A process writes a finished record that it has seen to the cache.
    Keep { value: u8 },
    /// The cache evicts a finished record.
    Evict,
    /// One tick passes: leases lapse.
    Tick,
    /// The retention of an unfinished or released record ends and it is swept.
    Sweep,
}

impl World {
    fn worker_actions(&self, state: &State, actions: &mut Vec<Action>) {
        for worker in 0..WORKERS {
            // Symmetry reduction: equal workers have equal successors.
            if worker > 0 && state.workers[worker] == state.workers[worker - 1] {
                continue;
            }
            let Worker::Busy(hand) = state.workers[worker] else {
                let held = (0u8..)
                    .zip(state.copies)
                    .filter(|(_, copy)| matches!(copy, super::state::Message::Held { .. }));
                actions.extend(held.map(|(copy, _)| Action::Deliver { worker, copy }));
                continue;
            };
            actions.push(Action::Crash { worker });
            if self.consumer.may_acknowledge(&hand) {
                actions.push(Action::Acknowledge { worker, applied: true });
                actions.push(Action::Acknowledge { worker, applied: false });
            }
            match hand.step {
                Step::Running { .. } => {
                    let ends = [Ended::Done, Ended::Failed, Ended::Refused, Ended::Panicked];
                    actions.extend(ends.map(|ended| Action::End { worker, ended }));
                }
                Step::Acknowledging => {}
                Step::Claiming { .. } | Step::Recording { .. } => {
                    actions.push(Action::Call { worker, reply: Reply::Received });
                    actions.push(Action::Call { worker, reply: Reply::Lost });
                }
                // Their answers do not matter.
                Step::Settling { .. } | Step::Withholding | Step::Deleting => {
                    actions.push(Action::Call { worker, reply: Reply::Received });
                }
            }
        }
    }

    fn other_actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.publications_left > 0 {
            actions.push(Action::Publish);
        }
        match state.redriver {
            Redriver::Idle if state.redrives_left > 0 && state.finished() == Some(DEAD_LETTER) => {
                actions.push(Action::Read);
            }
            Redriver::Idle => {}
            Redriver::Publishing { .. } | Redriver::Deleting { .. } => {
                actions.push(Action::Redrive { reply: Reply::Received });
                actions.push(Action::Redrive { reply: Reply::Lost });
                actions.push(Action::CrashRedriver);
            }
        }
        actions.extend(state.unwritten.members().map(|value| Action::Keep { value }));
        if matches!(state.cache, Cached::Fact(_)) {
            actions.push(Action::Evict);
        }
        if state.slot.is_some_and(|slot| slot.is_live()) {
            actions.push(Action::Tick);
        }
        if state.sweeps_left > 0 && state.slot.is_some_and(|slot| !matches!(slot.phase, Phase::Pinned { .. }))
        {
            actions.push(Action::Sweep);
        }
    }

    pub(crate) fn redrive(&self, state: &mut State, reply: Reply) {
        match state.redriver {
            Redriver::Idle => {}
            Redriver::Deleting { nonce } => {
                decide(state, &Command::Delete { id: ID, nonce: nonce_of(nonce) });
                state.redriver = Redriver::Publishing { nonce };
            }
            Redriver::Publishing { nonce } => {
                let published = state.redrives_left > 0 && state.publish(Some(nonce));
                state.redrives_left = state.redrives_left.saturating_sub(1);
                if reply == Reply::Received || !published {
                    state.redriver = Redriver::Idle;
                }
            }
        }
    }

    fn apply(&self, state: &mut State, action: Action) {
        match action {
            Action::Publish => {
                state.publications_left -= 1;
                state.ghost.accepted |= state.publish(None);
            }
            Action::Deliver { worker, copy } => Consumer::receive(state, worker, copy),
            Action::End { worker, ended } => self.consumer.end(state, worker, ended),
            Action::Call { worker, reply } => self.consumer.call(state, worker, reply),
            Action::Acknowledge { worker, applied } => Consumer::acknowledge(state, worker, applied),
            Action::Crash { worker } => state.workers[worker] = Worker::Idle,
            Action::Read => {
                let Some(nonce) = state.slot.map(|slot| slot.nonce) else { return };
                let deletes_first = self.consumer.has(Defect::RedriveDeletesFirst);
                state.redriver =
                    if deletes_first { Redriver::Deleting { nonce } } else { Redriver::Publishing { nonce } };
            }
            Action::Redrive { reply } => self.redrive(state, reply),
            Action::CrashRedriver => state.redriver = Redriver::Idle,
            Action::Keep { value } => {
                *state.unwritten.of(value) = false;
                // Written to absent keys only.
                if state.cache == Cached::Empty || self.consumer.has(Defect::TombstoneIsIgnored) {
                    state.cache = Cached::Fact(value);
                }
            }
            Action::Evict => state.cache = Cached::Empty,
            Action::Tick => state.slot = state.slot.map(|slot| slot.ticked()),
            Action::Sweep => {
                let is_due =
                    |slot: crate::slot::Slot| transition::due(&slot.expired().record(), NOW).is_some();
                if state.slot.is_some_and(is_due) {
                    state.slot = None;
                    state.sweeps_left -= 1;
                }
            }
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let EventBounds { publications, redrives, sweeps } = self.bounds;
        vec![State::initial(publications, redrives, sweeps)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.worker_actions(state, actions);
        self.other_actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.apply(&mut state, action);
        state.normalise();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
