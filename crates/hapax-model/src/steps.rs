//! The steps of the store: each calls the production transition function, writes what it decided and has the
//! step judged by [`rules`](crate::rules).

use hapax_core::transition::{self, Answer, Change, Command};
use hapax_core::{Claim, ClaimRequest, Fence, Fenced, Lease, Reason, Record, Settlement, Verdict};

use crate::bounds::{Bounds, Mode};
use crate::rules::{Cause, HeldTo, Step};
use crate::slot::{
    ID, LEASE, NOW, RETENTION, Slot, UNCERTAIN_RETENTION, fingerprint, nonce as nonce_of, nonce_id,
    scoped_key, value_of, value_tag,
};
use crate::state::{Act, Op, Rule, State};

/// Settlements bring nonces of their own; the first has this one.
const SETTLEMENT_NONCES: u8 = 8;

/// What the store tells whoever waits for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// The key is yours, as this attempt.
    Acquired { nonce: u8, attempt: u8 },
    /// The outcome, made by this attempt: stored before, or by your own transaction.
    Outcome { value: u8 },
    /// Ask again later.
    Busy,
    /// No, for another reason.
    Refused,
    /// Your outcome is final.
    Pinned,
    /// Your claim is believed for another lease, or you may still complete.
    Renewed,
    /// You have nothing to wait for.
    Ended,
    /// The key is not yours.
    Lost,
}

/// The store and the rules it is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// The promise.
    pub mode: Mode,
    /// The bounds of the search.
    pub bounds: Bounds,
}

impl Steps {
    /// The request of attempt `nonce` arrives.
    pub(crate) fn deliver(&self, state: &mut State, op: Op, nonce: u8) -> Told {
        let other = state.is_other(nonce);
        match op {
            Op::Claim => self.claim(state, nonce, other),
            Op::Transact => self.transact(state, nonce, other),
            Op::Complete => self.complete(state, nonce),
            Op::Renew => match self.fenced(state, Command::Renew(lease(nonce)), Cause::Renew { nonce }) {
                Fenced::Applied => Told::Renewed,
                Fenced::Lost => Told::Lost,
            },
            Op::Release => {
                let command = Command::Release { lease: lease(nonce), answered: None };
                self.fenced(state, command, Cause::Release { nonce });
                Told::Ended
            }
            Op::Abandon => {
                let command = Command::Abandon { lease: lease(nonce), reason: Reason::Panicked };
                self.fenced(state, command, Cause::Abandon { nonce });
                Told::Ended
            }
        }
    }

    /// Attempt `nonce` claims the key, for the usual request or the `other`.
    pub(crate) fn claim(&self, state: &mut State, nonce: u8, other: bool) -> Told {
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
            Claim::Acquired(lease) => Told::Acquired {
                nonce: nonce_id(lease.fence.nonce),
                attempt: u8::try_from(lease.fence.attempt).unwrap_or(u8::MAX),
            },
            Claim::Replay { recorded, .. } => {
                // The outcome of another request is no answer to this one, whoever made it.
                if state.slot.is_some_and(|slot| slot.other != other) {
                    state.ghost.breaks(Rule::Truth);
                }
                Told::Outcome { value: value_tag(&recorded) }
            }
            Claim::Busy { .. } => Told::Busy,
            Claim::Mismatch | Claim::Uncertain { .. } | Claim::Unreadable => Told::Refused,
        }
    }

    /// The outcome of attempt `nonce` is pinned. In transactional mode the effect commits with it, so a
    /// completion that changes nothing rolls its transaction back.
    pub(crate) fn complete(&self, state: &mut State, nonce: u8) -> Told {
        let before = state.slot;
        let command = Command::Complete { lease: lease(nonce), done: value_of(nonce), retention: RETENTION };
        let answer = self.fenced(state, command, Cause::Complete { nonce });
        if self.mode == Mode::Transactional && state.slot != before {
            let attempt = before.map_or(0, |slot| slot.attempt);
            state.ghost.effect(nonce, attempt);
        }
        match answer {
            Fenced::Applied => Told::Pinned,
            Fenced::Lost => Told::Lost,
        }
    }

    /// Claim, effect and outcome in one transaction. The row stays locked from the claim to the commit, so
    /// nothing can happen between them.
    fn transact(&self, state: &mut State, nonce: u8, other: bool) -> Told {
        let mut inside = state.clone();
        match self.claim(&mut inside, nonce, other) {
            Told::Acquired { nonce, .. } => match self.complete(&mut inside, nonce) {
                Told::Pinned => {
                    *state = inside;
                    Told::Outcome { value: nonce }
                }
                told => told,
            },
            told => {
                *state = inside;
                told
            }
        }
    }

    /// The act of the operator at `index` arrives.
    pub(crate) fn operate(&self, state: &mut State, index: usize) {
        let Some(act) = state.acts[index] else { return };
        let settlement = SETTLEMENT_NONCES + index as u8;
        let settle = |nonce, verdict| Command::Settle {
            id: ID,
            settlement: Settlement { attempt: nonce_of(nonce), nonce: nonce_of(settlement), verdict },
        };
        let command = match act {
            Act::SettleApplied { nonce } => {
                settle(nonce, Verdict::Applied { recorded: value_of(nonce), retention: RETENTION })
            }
            Act::SettleNotApplied { nonce } => settle(nonce, Verdict::NotApplied),
            Act::Delete { nonce } => Command::Delete { id: ID, nonce: nonce_of(nonce) },
        };
        self.decide(state, &command, Cause::Operator { act, settlement });
    }

    /// The sweeper looks at the record.
    pub(crate) fn sweep(&self, state: &mut State) {
        let due = state.slot.is_some_and(|slot| transition::due(&slot.record(), NOW).is_some());
        if due {
            self.write(state, None, Cause::Sweep);
        }
    }

    /// The process that owns the store is started again.
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
            state.ghost.breaks(Rule::NoNonceTwice);
        }
        let after = stored(state.slot, &decision.change);
        self.write(state, after, cause);
        decision.answer
    }

    fn write(&self, state: &mut State, after: Option<Slot>, cause: Cause) {
        let step = Step { before: state.slot, after, cause };
        let held = HeldTo { mode: self.mode, attempts_max: self.bounds.attempts_max, ghost: &state.ghost };
        if let Some(rule) = step.breaks(&held) {
            state.ghost.breaks(rule);
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

/// Whether the same command, arriving again at once, is recognised: same answer, nothing changed.
fn is_repeatable(record: &Record, command: &Command, answer: &Answer) -> bool {
    let again = transition::decide(Some(record), command, NOW);
    let unchanged = match &again.change {
        Change::Keep => true,
        Change::Put(after) => **after == *record,
        Change::Remove => false,
    };
    unchanged && again.answer == *answer
}

fn stored(before: Option<Slot>, change: &Change) -> Option<Slot> {
    match change {
        Change::Keep => before,
        Change::Put(record) => Some(Slot::of(record)),
        Change::Remove => None,
    }
}

/// What attempt `nonce` shows to write. Writes are fenced by the nonce alone; an attempt number that mattered
/// would be noticed, because nobody could complete.
fn lease(nonce: u8) -> Lease {
    Lease { id: ID, fence: Fence { nonce: nonce_of(nonce), attempt: 0 }, length: LEASE }
}
