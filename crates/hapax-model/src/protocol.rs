//! [`Protocol`]: the stateright model, with the actions possible in each [`State`].

use stateright::{Model, Property};

use crate::bounds::Mode;
use crate::properties;
use crate::slot::Expiry;
use crate::state::{Executor, Op, OperatorAct, State};
use crate::steps::{Steps, StoreAnswer};

/// Executors, an operator, a network and a store that work on one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol(pub Steps);

/// One action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// An idle executor starts an attempt, for the usual request or the other.
    Start { executor: usize, other: bool },
    /// A request is delivered; its answer is delivered too, or lost.
    Deliver { op: Op, nonce: u8, answered: bool },
    /// An executor performs its effect.
    Effect { executor: usize },
    /// An executor stops working on its attempt: it crashed and restarted, timed out, panicked or released the key. Its
    /// release and abandonment may be delivered from now on.
    Leave { executor: usize },
    /// An executor's handler declares itself retryable after its effect.
    Declare { executor: usize },
    /// An executor's completion timed out: the caller gets the true outcome, unrecorded.
    TimeOut { executor: usize },
    /// The operator reads the record and sends a request.
    OperatorSend(OperatorAct),
    /// A request of the operator is delivered.
    OperatorDeliver { index: usize },
    /// One tick passes.
    Tick,
    /// The retention of the record passes.
    Expire,
    /// A sweep runs.
    Sweep,
    /// The process that owns store and executors crashes and restarts.
    Restart,
}

impl Protocol {
    /// Whether effects are separate steps, outside the store.
    pub(crate) fn effect_is_outside(&self) -> bool {
        self.0.mode != Mode::Transactional
    }

    fn executor_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let bounds = &self.0.bounds;
        for executor in 0..bounds.executors {
            // Symmetry reduction: equal executors have equal successors.
            if executor > 0 && state.executors[executor] == state.executors[executor - 1] {
                continue;
            }
            match state.executors[executor] {
                Executor::Idle if state.started < bounds.nonces => {
                    actions.push(Action::Start { executor, other: false });
                    if bounds.mismatch && state.started + 1 == bounds.nonces {
                        actions.push(Action::Start { executor, other: true });
                    }
                }
                Executor::Idle => {}
                Executor::Claiming { .. } => actions.push(Action::Leave { executor }),
                Executor::Holding { .. } => {
                    actions.push(Action::Leave { executor });
                    if self.effect_is_outside() {
                        actions.push(Action::Effect { executor });
                    }
                }
                Executor::Completing { .. } => {
                    actions.push(Action::Leave { executor });
                    actions.push(Action::TimeOut { executor });
                    if bounds.declared {
                        actions.push(Action::Declare { executor });
                    }
                }
            }
        }
    }

    fn operator_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let sent = state.acts.iter().flatten().count();
        actions.extend((0..sent).map(|index| Action::OperatorDeliver { index }));
        if sent == self.0.bounds.operator_acts_max {
            return;
        }
        if let Some(nonce) = state.uncertain() {
            if state.ghost.effects_ever.contains(nonce) {
                actions.push(Action::OperatorSend(OperatorAct::SettleApplied { nonce }));
            } else if state.is_dead(self.0.mode, nonce) {
                actions.push(Action::OperatorSend(OperatorAct::SettleNotApplied { nonce }));
            }
        }
        if let Some(slot) = state.slot {
            actions.push(Action::OperatorSend(OperatorAct::Delete { nonce: slot.nonce }));
        }
    }

    fn store_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let Some(slot) = state.slot else { return };
        actions.push(Action::Tick);
        if state.forgets_left > 0 && slot.expiry != Expiry::Ticks(0) {
            actions.push(Action::Expire);
        }
        actions.push(Action::Sweep);
        actions.push(Action::Restart);
    }

    /// The executor that waits for the answer to this request.
    fn waiting_for(&self, state: &State, op: Op, nonce: u8) -> Option<usize> {
        let executor = state.executor_of(nonce)?;
        let waits = match state.executors[executor] {
            Executor::Idle => false,
            Executor::Claiming { .. } => matches!(op, Op::Claim | Op::Transact),
            // A renewal runs beside the work; a transaction commits without an effect before it.
            Executor::Holding { .. } => op == Op::Renew || (op == Op::Complete && !self.effect_is_outside()),
            Executor::Completing { .. } => op == Op::Complete,
        };
        waits.then_some(executor)
    }

    /// Delivers a request, and its answer too if it is `answered` and an executor waits for it.
    pub(crate) fn deliver(&self, state: &mut State, op: Op, nonce: u8, answered: bool) -> StoreAnswer {
        let waiting = self.waiting_for(state, op, nonce);
        let answer = self.0.deliver(state, op, nonce);
        if answered && let Some(executor) = waiting {
            self.receive(state, executor, nonce, answer);
        }
        answer
    }

    fn receive(&self, state: &mut State, executor: usize, sender: u8, answer: StoreAnswer) {
        let now = &mut state.executors[executor];
        match (*now, answer) {
            (Executor::Claiming { .. }, StoreAnswer::Acquired { nonce, attempt }) => {
                *now = Executor::Holding { nonce, attempt };
            }
            (_, StoreAnswer::Outcome { value }) => {
                *now = Executor::Idle;
                state.ghost.answered.insert(value);
            }
            (Executor::Completing { nonce }, StoreAnswer::Lost) => {
                self.answer_unrecorded(state, executor, nonce)
            }
            (Executor::Holding { .. }, StoreAnswer::Renewed) | (_, StoreAnswer::Busy) => {}
            (_, StoreAnswer::Pinned) => {
                *now = Executor::Idle;
                state.ghost.answered.insert(sender);
            }
            _ => *now = Executor::Idle,
        }
    }

    /// The effect happened and could not be recorded: the caller still gets the true answer. If reruns are allowed, that
    /// answer is marked as unrecorded and not binding, so only at most once counts it.
    fn answer_unrecorded(&self, state: &mut State, executor: usize, nonce: u8) {
        state.executors[executor] = Executor::Idle;
        if self.0.mode == Mode::AtMostOnce && !state.ghost.before.contains(nonce) {
            state.ghost.answered.insert(nonce);
        }
    }

    /// An executor that holds the key performs its effect and sends the outcome.
    pub(crate) fn effect(&self, state: &mut State, executor: usize) {
        if let Executor::Holding { nonce, attempt } = state.executors[executor] {
            state.executors[executor] = Executor::Completing { nonce };
            state.ghost.effect(nonce, attempt);
        }
    }

    fn apply(&self, state: &mut State, action: Action) {
        match action {
            Action::Start { executor, other } => {
                state.executors[executor] = Executor::Claiming { nonce: state.started };
                state.started += 1;
                state.last_is_other = other;
            }
            Action::Deliver { op, nonce, answered } => {
                self.deliver(state, op, nonce, answered);
            }
            Action::Effect { executor } => self.effect(state, executor),
            Action::Leave { executor } => state.executors[executor] = Executor::Idle,
            Action::Declare { executor } => {
                if let Some(nonce) = state.executors[executor].nonce() {
                    state.ghost.declared.insert(nonce);
                }
                state.executors[executor] = Executor::Idle;
            }
            Action::TimeOut { executor } => {
                if let Some(nonce) = state.executors[executor].nonce() {
                    self.answer_unrecorded(state, executor, nonce);
                }
            }
            Action::OperatorSend(act) => {
                if let Some(free) = state.acts.iter_mut().find(|slot| slot.is_none()) {
                    *free = Some(act);
                }
            }
            Action::OperatorDeliver { index } => self.0.deliver_act(state, index),
            Action::Tick => state.slot = state.slot.map(|slot| slot.ticked()),
            Action::Expire => {
                state.slot = state.slot.map(|slot| slot.expired());
                state.ghost.over = true;
                state.forgets_left -= 1;
            }
            Action::Sweep => self.0.sweep(state),
            Action::Restart => {
                state.executors = [Executor::Idle; _];
                self.0.restart(state);
            }
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::initial(&self.0.bounds)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.executor_actions(state, actions);
        self.operator_actions(state, actions);
        self.store_actions(state, actions);
        for (op, nonce) in state.requests(self.0.mode) {
            actions.push(Action::Deliver { op, nonce, answered: false });
            if self.waiting_for(state, op, nonce).is_some() {
                actions.push(Action::Deliver { op, nonce, answered: true });
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.apply(&mut state, action);
        state.executors[..self.0.bounds.executors].sort_unstable();
        (state != *last).then_some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.slot.is_none_or(|slot| slot.attempt <= self.0.bounds.attempts_explored)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self.0.mode)
    }
}
