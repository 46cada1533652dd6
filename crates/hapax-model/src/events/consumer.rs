//! What a worker does with a delivery: the only file that says which answer of the store permits an acknowledgement.
//!
//! Every change of the record is decided by [`hapax_core::transition`].

use hapax_core::transition::{self, Answer, Command};
use hapax_core::{Claim, ClaimRequest, Deleted, Fenced, OnLapse, Reason, Settlement, Verdict};

use super::defect::Defect;
use super::state::{Cached, End, Hand, Message, SUCCESS, State, Step, Worker};
use crate::slot::{
    DEAD_LETTER, ID, LEASE, NOW, RETENTION, UNCERTAIN_RETENTION, fingerprint, nonce as nonce_of, nonce_id,
    scoped_key, value_of, value_tag,
};
use crate::steps::{lease, stored};

/// Failures after which an event is a dead letter.
const TRIES_MAX: u8 = 2;
/// Attempts in a row without an answer, after which an event is a dead letter.
const CRASHES_MAX: u8 = 2;

/// How a handler ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// With a result.
    Done,
    /// With an error: to be tried again.
    Failed,
    /// With a final error.
    Refused,
    /// With a panic.
    Panicked,
}

/// Whether the answer of the store reaches the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// It does.
    Received,
    /// The command was applied, and the answer is lost.
    Lost,
}

/// A worker's code, with a defect or without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumer {
    pub(crate) defect: Option<Defect>,
}

impl Consumer {
    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// Takes a delivery.
    pub(crate) fn receive(state: &mut State, worker: usize, copy: u8) {
        let Message::Held { redrives } = state.copies[usize::from(copy)] else { return };
        let recorded = state.finished().is_some();
        let step = Step::Claiming { nonce: None };
        state.workers[worker] = Worker::Busy(Hand { copy, redrives, step, deleted: false, recorded });
    }

    /// The handler ends.
    pub(crate) fn end(&self, state: &mut State, worker: usize, ended: Ended) {
        let Worker::Busy(hand) = &mut state.workers[worker] else { return };
        let Step::Running { nonce, attempt } = hand.step else { return };
        let end = match ended {
            Ended::Done => End::Success,
            Ended::Failed if attempt < TRIES_MAX => End::Release,
            Ended::Failed | Ended::Refused => End::DeadLetter,
            Ended::Panicked => End::Abandon,
        };
        hand.step = Step::Recording { nonce, end };
        if self.has(Defect::FactBeforeCompletion) && end == End::Success {
            state.unwritten.success = true;
        }
    }

    /// Whether the worker may acknowledge its delivery now.
    pub(crate) fn may_acknowledge(&self, hand: &Hand) -> bool {
        match hand.step {
            Step::Acknowledging => true,
            Step::Running { .. } => self.has(Defect::AckOnClaim),
            Step::Recording { end: End::Success, .. } => self.has(Defect::AckBeforeCompletion),
            Step::Recording { end: End::DeadLetter, .. } => self.has(Defect::AckBeforeDeadLetter),
            _ => false,
        }
    }

    /// Acknowledges the delivery; the message leaves the broker if that is `applied`, also when another worker has it.
    pub(crate) fn acknowledge(state: &mut State, worker: usize, applied: bool) {
        let Worker::Busy(hand) = &state.workers[worker] else { return };
        state.ghost.unproven |= !hand.recorded;
        if applied {
            state.copies[usize::from(hand.copy)] = Message::Acknowledged;
        }
        if hand.step == Step::Acknowledging {
            state.workers[worker] = Worker::Idle;
        }
    }

    /// The next call of the worker to cache and store; none while its handler runs or an acknowledgement is due.
    pub(crate) fn call(&self, state: &mut State, worker: usize, reply: Reply) {
        let Worker::Busy(mut hand) = state.workers[worker] else { return };
        let next = match hand.step {
            Step::Claiming { nonce } => self.claim(state, &mut hand, nonce, reply),
            Step::Recording { nonce, end } => self.record(state, nonce, end, reply),
            Step::Settling { nonce } => self.settle(state, nonce),
            Step::Withholding => {
                if !self.has(Defect::DeletionLeavesFact) {
                    state.cache = Cached::Withheld;
                }
                Step::Deleting
            }
            Step::Deleting => Self::delete(state, &mut hand),
            Step::Running { .. } | Step::Acknowledging => return,
        };
        // The call may have finished the record, which the state has noted for every worker.
        if let Worker::Busy(noted) = state.workers[worker] {
            hand.recorded = noted.recorded;
        }
        hand.step = next;
        state.workers[worker] = Worker::Busy(hand);
    }

    fn claim(&self, state: &mut State, hand: &mut Hand, nonce: Option<u8>, reply: Reply) -> Step {
        let retry = Step::Claiming { nonce: None };
        if let Cached::Fact(value) = state.cache {
            state.ghost.answered_from_cache = true;
            return self.answered(hand, value);
        }
        let nonce = nonce.unwrap_or_else(|| state.fresh_nonce());
        let command = Command::Claim(ClaimRequest {
            key: scoped_key(),
            fingerprint: fingerprint(false),
            nonce: nonce_of(nonce),
            lease: LEASE,
            on_lapse: OnLapse::Rerun,
            attempts_max: u32::from(CRASHES_MAX),
            uncertain_retention: UNCERTAIN_RETENTION,
        });
        let Answer::Claim(answer) = decide(state, &command) else {
            unreachable!("a claim is answered as a claim")
        };
        if reply == Reply::Lost {
            let is_unknown_an_outcome = self.has(Defect::AckWhenStoreIsDown);
            return if is_unknown_an_outcome {
                Step::Acknowledging
            } else {
                Step::Claiming { nonce: Some(nonce) }
            };
        }
        match answer {
            Claim::Acquired(lease) => {
                if self.has(Defect::ClaimsCached) {
                    state.cache = Cached::Fact(SUCCESS);
                }
                let attempt = u8::try_from(lease.fence.attempt).unwrap_or(u8::MAX);
                // Neither of the two counters ends it: a commit that never succeeds, for example.
                if attempt > TRIES_MAX + CRASHES_MAX {
                    return Step::Recording { nonce, end: End::DeadLetter };
                }
                Step::Running { nonce, attempt }
            }
            Claim::Replay { recorded, .. } => {
                let value = value_tag(&recorded);
                *state.unwritten.of(value) = true;
                self.answered(hand, value)
            }
            Claim::Busy { .. } if self.has(Defect::AckOnBusy) => Step::Acknowledging,
            Claim::Uncertain { .. } if self.has(Defect::AckOnUncertain) => Step::Acknowledging,
            Claim::Uncertain { .. } if self.has(Defect::UncertainIsHeld) => retry,
            Claim::Uncertain { fence, .. } => Step::Settling { nonce: nonce_id(fence.nonce) },
            Claim::Busy { .. } | Claim::Mismatch | Claim::Unreadable => retry,
        }
    }

    /// The event is finished. A message of the redriver first deletes the dead letter that its header names, whether the
    /// answer came from the store or from the cache: the deletion is conditional on that nonce.
    fn answered(&self, hand: &Hand, value: u8) -> Step {
        if value == DEAD_LETTER && hand.redrives.is_some() && !hand.deleted {
            return Step::Withholding;
        }
        Step::Acknowledging
    }

    fn record(&self, state: &mut State, nonce: u8, end: End, reply: Reply) -> Step {
        let pin =
            |value| Command::Complete { lease: lease(nonce), done: value_of(value), retention: RETENTION };
        let (command, value) = match end {
            End::Success => (pin(SUCCESS), Some(SUCCESS)),
            End::DeadLetter => (pin(DEAD_LETTER), Some(DEAD_LETTER)),
            End::Release => (Command::Release { lease: lease(nonce), answered: None }, None),
            End::Abandon => (Command::Abandon { lease: lease(nonce), reason: Reason::Panicked }, None),
        };
        let Answer::Fenced(answer) = decide(state, &command) else {
            unreachable!("a fenced write is answered as one")
        };
        if reply == Reply::Lost {
            return Step::Recording { nonce, end };
        }
        match (value, answer) {
            (Some(value), Fenced::Applied) => {
                *state.unwritten.of(value) = true;
                Step::Acknowledging
            }
            (Some(_), Fenced::Lost) if self.has(Defect::AckWhenSuperseded) => Step::Acknowledging,
            (None, _) if self.has(Defect::AckOnRelease) => Step::Acknowledging,
            (Some(_), Fenced::Lost) | (None, _) => Step::Claiming { nonce: None },
        }
    }

    fn settle(&self, state: &mut State, attempt: u8) -> Step {
        let verdict = Verdict::Applied { recorded: value_of(DEAD_LETTER), retention: RETENTION };
        let settlement = Settlement::new(nonce_of(attempt), verdict);
        let settlement = settlement.with_nonce(nonce_of(state.fresh_nonce()));
        decide(state, &Command::Settle { id: ID, settlement });
        // Whatever the answer is, another claim tells what the record says now.
        Step::Claiming { nonce: None }
    }

    fn delete(state: &mut State, hand: &mut Hand) -> Step {
        if let Some(nonce) = hand.redrives {
            let answer = decide(state, &Command::Delete { id: ID, nonce: nonce_of(nonce) });
            state.ghost.redriven |= answer == Answer::Deleted(Deleted::Applied);
        }
        hand.deleted = true;
        Step::Claiming { nonce: None }
    }
}

/// Decides a command and applies the change.
pub(crate) fn decide(state: &mut State, command: &Command) -> Answer {
    let record = state.slot.map(|slot| slot.record());
    let decision = transition::decide(record.as_ref(), command, NOW);
    state.slot = stored(state.slot, &decision.change);
    state.note_finished();
    decision.answer
}
