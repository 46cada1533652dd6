//! [`Conclude`]: what becomes of a record after a run, by the decision about it.

use hapax_core::{Reason, Recorded};

use super::Keyed;
use crate::engine::{Finish, not_kept};
use crate::events::dead_letter::{self, DeadReason};
use crate::events::decide::{Decision, Finding, Rules, Write, decide};
use crate::events::handler::{HandlerOutcome, PermanentReason};

/// Turns the outcome of a handler into what is recorded.
pub(super) struct Conclude {
    pub(super) keyed: Keyed,
    pub(super) rules: Rules,
    pub(super) result_bytes_max: usize,
    pub(super) dead_letter_bytes_max: usize,
}

impl Conclude {
    pub(super) fn conclude(&self, outcome: HandlerOutcome, attempt: u32) -> (Finish, Decision) {
        let (finding, error) = match outcome {
            HandlerOutcome::Done(recorded) => {
                let decision = decide(Finding::Succeeded, &self.rules);
                let fits = recorded.len() <= self.result_bytes_max;
                let recorded = if fits { recorded } else { not_kept(&recorded) };
                return (Finish::Pin(recorded), decision);
            }
            HandlerOutcome::Retry(error) => (Finding::Failed { attempt }, error),
            HandlerOutcome::Permanent { reason, error } => {
                (Finding::Rejected { reason: reason.into(), attempt }, error)
            }
            HandlerOutcome::Unknown(error) => (Finding::Unknown { attempt }, error),
        };
        let decision = decide(finding, &self.rules);
        match decision.write {
            Write::Released => (Finish::Release(Some(error.encode())), decision),
            Write::DeadLetter(_) => self.dead_or_released(decision, &error.message, attempt),
            // A failure is never recorded as anything else.
            _ => (Finish::Uncertain(Reason::Declared), decision),
        }
    }

    /// The dead letter of this decision. One that the store does not take is not recorded, and the key is released.
    pub(super) fn dead_or_released(
        &self,
        decision: Decision,
        error: &str,
        attempt: u32,
    ) -> (Finish, Decision) {
        let Write::DeadLetter(reason) = decision.write else { return (Finish::Release(None), decision) };
        match self.dead_letter(reason, error, attempt) {
            Some(dead_letter) => (Finish::Pin(dead_letter), decision),
            None => (Finish::Release(None), decide(Finding::TooLarge { attempt }, &self.rules)),
        }
    }

    /// The event as a dead letter; `None` when it is too large for the store.
    pub(super) fn dead_letter(&self, reason: DeadReason, error: &str, attempt: u32) -> Option<Recorded> {
        let Keyed { event, destination, .. } = &self.keyed;
        let dead_letter = dead_letter::recorded(event, reason, error, attempt, destination.as_deref());
        if dead_letter.len() <= self.dead_letter_bytes_max {
            return Some(dead_letter);
        }
        tracing::error!(
            id = %self.keyed.id, bytes = dead_letter.len(), bytes_max = self.dead_letter_bytes_max,
            "a dead letter is larger than the store takes; its event is given back to its broker"
        );
        None
    }
}

impl From<PermanentReason> for DeadReason {
    fn from(reason: PermanentReason) -> Self {
        match reason {
            PermanentReason::Permanent => Self::Permanent,
            PermanentReason::Undecodable => Self::Undecodable,
            PermanentReason::UnknownType => Self::UnknownType,
        }
    }
}
