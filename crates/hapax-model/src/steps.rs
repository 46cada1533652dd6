//! The steps of the store: each calls the production transition function, applies its decision and checks the step
//! against [`rules`](crate::rules).

use hapax_core::transition::{self, Answer, Change, Command};
use hapax_core::{Claim, ClaimRequest, Fence, Fenced, Lease, Reason, Record, Settlement, Verdict};

use crate::bounds::{Bounds, Mode};
use crate::rules::{Cause, RuleContext, Step};
use crate::slot::{
    ID, LEASE, NOW, RETENTION, Slot, UNCERTAIN_RETENTION, fingerprint, nonce as nonce_of, nonce_id,
    scoped_key, value_of, value_tag,
};
use crate::state::{Op, OperatorAct, Rule, State};

/// The nonce of the first settlement; settlements have nonces of their own.
const SETTLEMENT_NONCES: u8 = 8;

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreAnswer {
    /// The attempt acquired the key.
    Acquired { nonce: u8, attempt: u8 },
    /// The outcome, produced by this attempt: replayed, or committed by the request's own transaction.
    Outcome { value: u8 },
    /// In progress; retry later.
    Busy,
    /// Refused for another reason.
    Refused,
    /// The completion is applied.
    Pinned,
    /// The lease is renewed.
    Renewed,
    /// The release or abandonment was processed.
    Ended,
    /// The attempt does not hold the key.
    Lost,
}

/// The store and its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// The mode.
    pub mode: Mode,
    /// The bounds of the search.
    pub bounds: Bounds,
}

impl Steps {
    /// Delivers a request of attempt `nonce`.
    pub(crate) fn deliver(&self, state: &mut State, op: Op, nonce: u8) -> StoreAnswer {
        let other = state.is_other(nonce);
        match op {
            Op::Claim => self.claim(state, nonce, other),
            Op::Transact => self.transact(state, nonce, other),
            Op::Complete => self.complete(state, nonce),
            Op::Renew => match self.fenced(state, Command::Renew(lease(nonce)), Cause::Renew { nonce }) {
                Fenced::Applied => StoreAnswer::Renewed,
                Fenced::Lost => StoreAnswer::Lost,
            },
            Op::Release => {
                let command = Command::Release { lease: lease(nonce), answered: None };
                self.fenced(state, command, Cause::Release { nonce });
                StoreAnswer::Ended
            }
            Op::Abandon => {
                let command = Command::Abandon { lease: lease(nonce), reason: Reason::Panicked };
                self.fenced(state, command, Cause::Abandon { nonce });
                StoreAnswer::Ended
            }
        }
    }

    /// Claims the key for attempt `nonce`, with the usual request or the `other`.
    pub(crate) fn claim(&self, state: &mut State, nonce: u8, other: bool) -> StoreAnswer {
        let command = Command::Claim(ClaimRequest {
            key: scoped_key(),
            fingerprint: fingerprint(other),
            nonce: nonce_of(nonce),
            lease: LEASE,
            on_lapse: self.mode.on_lapse(),
            attempts_max: self.bounds.attempts_max,
            uncertain_retention: UNCERTAIN_RETENTION,
        });
        let Answer::Claim(answer) = self.decide(state, &command, Cause::Claim { nonce, other }) else {
            unreachable!("a claim is answered as a claim")
        };
        match answer {
            Claim::Acquired(lease) => StoreAnswer::Acquired {
                nonce: nonce_id(lease.fence.nonce),
                attempt: u8::try_from(lease.fence.attempt).unwrap_or(u8::MAX),
            },
            Claim::Replay { recorded, .. } => {
                // The outcome of another request must not be replayed.
                if state.slot.is_some_and(|slot| slot.other != other) {
                    state.ghost.record_violation(Rule::Truth);
                }
                StoreAnswer::Outcome { value: value_tag(&recorded) }
            }
            Claim::Busy { .. } => StoreAnswer::Busy,
            Claim::Mismatch | Claim::Uncertain { .. } | Claim::Unreadable => StoreAnswer::Refused,
        }
    }

    /// Pins the outcome of attempt `nonce`. In transactional mode the effect commits with it, so a completion that
    /// changes nothing rolls its transaction back.
    pub(crate) fn complete(&self, state: &mut State, nonce: u8) -> StoreAnswer {
        let before = state.slot;
        let command = Command::Complete { lease: lease(nonce), done: value_of(nonce), retention: RETENTION };
        let answer = self.fenced(state, command, Cause::Complete { nonce });
        if self.mode == Mode::Transactional && state.slot != before {
            let attempt = before.map_or(0, |slot| slot.attempt);
            state.ghost.effect(nonce, attempt);
        }
        match answer {
            Fenced::Applied => StoreAnswer::Pinned,
            Fenced::Lost => StoreAnswer::Lost,
        }
    }

    /// Claim, effect and outcome in one transaction. The row stays locked from the claim to the commit, so no other step
    /// interleaves.
    fn transact(&self, state: &mut State, nonce: u8, other: bool) -> StoreAnswer {
        let mut inside = state.clone();
        match self.claim(&mut inside, nonce, other) {
            StoreAnswer::Acquired { nonce, .. } => match self.complete(&mut inside, nonce) {
                StoreAnswer::Pinned => {
                    *state = inside;
                    StoreAnswer::Outcome { value: nonce }
                }
                answer => answer,
            },
            answer => {
                *state = inside;
                answer
            }
        }
    }

    /// Delivers the operator's act at `index`.
    pub(crate) fn deliver_act(&self, state: &mut State, index: usize) {
        let Some(act) = state.acts[index] else { return };
        let settlement = SETTLEMENT_NONCES + index as u8;
        let settle = |nonce, verdict| Command::Settle {
            id: ID,
            settlement: Settlement::new(nonce_of(nonce), verdict).with_nonce(nonce_of(settlement)),
        };
        let command = match act {
            OperatorAct::SettleApplied { nonce } => {
                settle(nonce, Verdict::Applied { recorded: value_of(nonce), retention: RETENTION })
            }
            OperatorAct::SettleNotApplied { nonce } => settle(nonce, Verdict::NotApplied),
            OperatorAct::Delete { nonce } => Command::Delete { id: ID, nonce: nonce_of(nonce) },
        };
        self.decide(state, &command, Cause::Operator { act, settlement });
    }

    /// Sweeps the record if it is due.
    pub(crate) fn sweep(&self, state: &mut State) {
        let due = state.slot.is_some_and(|slot| transition::due(&slot.record(), NOW).is_some());
        if due {
            self.write(state, None, Cause::Sweep);
        }
    }

    /// Restarts the process that owns the store.
    pub(crate) fn restart(&self, state: &mut State) {
        let Some(slot) = state.slot else { return };
        let change = transition::restart(&slot.record(), NOW);
        let after = stored(state.slot, &change);
        self.write(state, after, Cause::Restart);
    }

    fn fenced(&self, state: &mut State, command: Command, cause: Cause) -> Fenced {
        match self.decide(state, &command, cause) {
            Answer::Fenced(answer) => answer,
            answer => unreachable!("a fenced write was answered with {answer:?}"),
        }
    }

    fn decide(&self, state: &mut State, command: &Command, cause: Cause) -> Answer {
        let record = state.slot.map(|slot| slot.record());
        let decision = transition::decide(record.as_ref(), command, NOW);
        if let Change::Put(record) = &decision.change
            && !is_repeatable(record, command, &decision.answer)
        {
            state.ghost.record_violation(Rule::NoNonceTwice);
        }
        let after = stored(state.slot, &decision.change);
        self.write(state, after, cause);
        decision.answer
    }

    fn write(&self, state: &mut State, after: Option<Slot>, cause: Cause) {
        let step = Step { before: state.slot, after, cause };
        let context =
            RuleContext { mode: self.mode, attempts_max: self.bounds.attempts_max, ghost: &state.ghost };
        if let Some(rule) = step.violated_rule(&context) {
            state.ghost.record_violation(rule);
        }
        if step.forgets(&state.ghost) {
            state.forget();
        }
        if step.acquires()
            && let Some(slot) = after
        {
            state.ghost.before.remove(slot.nonce);
        }
        let same_life = |slot: Slot| step.before.is_some_and(|before| before.expiry == slot.expiry);
        state.ghost.over &= after.is_some_and(same_life);
        state.slot = after;
    }
}

/// Whether an immediate duplicate of the command gets the same answer and changes nothing.
fn is_repeatable(record: &Record, command: &Command, answer: &Answer) -> bool {
    let again = transition::decide(Some(record), command, NOW);
    let unchanged = match &again.change {
        Change::Keep => true,
        Change::Put(after) => **after == *record,
        Change::Remove => false,
    };
    unchanged && again.answer == *answer
}

/// The slot after a change.
pub(crate) fn stored(before: Option<Slot>, change: &Change) -> Option<Slot> {
    match change {
        Change::Keep => before,
        Change::Put(record) => Some(Slot::of(record)),
        Change::Remove => None,
    }
}

/// The lease of attempt `nonce`, with a wrong attempt number: writes are fenced by the nonce alone, and if the number
/// mattered no completion would apply.
pub(crate) fn lease(nonce: u8) -> Lease {
    Lease { id: ID, fence: Fence { nonce: nonce_of(nonce), attempt: 0 }, length: LEASE }
}
