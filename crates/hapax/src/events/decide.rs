//! What a consumer does with an event: one pure function, from what was found out about it to what is recorded and what
//! its broker learns. It has no clock, no store and no broker.

use std::time::Duration;

use hapax_core::OnLapse;

use super::consumer::DeadLetters;
use super::dead_letter::DeadReason;
use super::handle::Handled;

/// What was found out about an event, by running its handler or instead of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Finding {
    /// The handler returned a result.
    Succeeded,
    /// The handler returned an error that may pass.
    Failed { attempt: u32 },
    /// No attempt can succeed: an unknown type, data that cannot be decoded, an error that the handler calls final.
    Rejected { reason: DeadReason, attempt: u32 },
    /// The handler panicked, or said that it does not know whether it had its effect.
    Unknown { attempt: u32 },
    /// The key was claimed by an attempt that comes after all tries. Nothing has run in it.
    Overdue,
    /// It is recorded that the event was processed.
    Completed,
    /// It is recorded that the event is not to be processed.
    Dead,
    /// The same, in the very record that an operator has redriven.
    Redriven,
    /// The owners of the key are gone, and no other attempt may run.
    Abandoned,
    /// The same, and it could not be settled.
    Unsettled,
    /// Another attempt is running.
    Busy { lease_left: Duration },
    /// The key cannot be used for this event: it is another event's, too old, or its record cannot be read. Or the event
    /// has no key.
    Unusable { reason: DeadReason },
    /// The handler ran, and its outcome is not in the store: it is on its way, or another attempt has taken over.
    Unrecorded,
    /// The store cannot be asked.
    StoreFailed,
    /// The dead letter exceeds what the store takes. Where this attempt holds the key, it releases it.
    TooLarge { attempt: u32 },
    /// The process is shutting down.
    Draining,
}

/// What a consumer is set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rules {
    pub(super) tries_max: u32,
    pub(super) crashes_max: u32,
    pub(super) on_lapse: OnLapse,
    pub(super) dead_letters: DeadLetters,
    pub(super) lease: Duration,
}

/// What becomes of the event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decision {
    pub(super) write: Write,
    /// Only once `write` is recorded; otherwise the finding is [`Finding::Unrecorded`] or [`Finding::StoreFailed`].
    pub(super) then: Then,
}

/// What is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Write {
    Nothing,
    /// The result.
    Completed,
    /// That the key is free for the next attempt.
    Released,
    /// That the outcome is unknown.
    Uncertain,
    /// A dead letter, by the attempt that holds the key.
    DeadLetter(DeadReason),
    /// A dead letter, as the settlement of an uncertain record.
    Settled(DeadReason),
    /// A dead letter under a key of its own, because the event's key is another record's.
    Apart(DeadReason),
    /// The dead letter is removed.
    Removed,
}

/// What happens to the delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    /// The broker forgets the event.
    Ack(Handled),
    /// The delivery stays in hand; then the key is claimed again.
    Hold(Wait),
    /// The broker delivers the event again; by the wait, not in a tight loop.
    GiveBack(Option<Wait>),
    /// The key is claimed again at once.
    ClaimAgain,
}

/// How long a delivery is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// The back-off after this attempt.
    BackOff { attempt: u32 },
    /// Until the record changes, or for this long.
    Change { within: Duration },
    /// Until the store answers again.
    Store,
}

impl Rules {
    /// Whether an attempt of this number is one that should not exist: those before have neither failed nor crashed as
    /// often as they may, and still nothing is recorded.
    pub(super) fn is_overdue(&self, attempt: u32) -> bool {
        self.dead_letters == DeadLetters::Kept && attempt > self.tries_max.saturating_add(self.crashes_max)
    }

    /// The reason of a dead letter whose owners are gone.
    fn abandoned(&self) -> DeadReason {
        match self.on_lapse {
            OnLapse::Rerun => DeadReason::Crashed,
            OnLapse::Uncertain => DeadReason::Uncertain,
        }
    }
}

/// The table: V-02 to V-07.
pub(super) fn decide(finding: Finding, rules: &Rules) -> Decision {
    use DeadLetters::{Broker, Kept};
    let row = |write, then| Decision { write, then };
    let back_off = |attempt| Wait::BackOff { attempt };
    let dead = Then::Ack(Handled::Dead);
    match (finding, rules.dead_letters) {
        (Finding::Succeeded, _) => row(Write::Completed, Then::Ack(Handled::Ran)),
        (Finding::Completed, _) => row(Write::Nothing, Then::Ack(Handled::Duplicate)),
        (Finding::Dead, _) => row(Write::Nothing, dead),
        (Finding::Redriven, _) => row(Write::Removed, Then::ClaimAgain),

        (Finding::Failed { attempt }, Kept) if attempt < rules.tries_max => {
            row(Write::Released, Then::Hold(back_off(attempt)))
        }
        (Finding::Failed { .. }, Kept) => row(Write::DeadLetter(DeadReason::Failed), dead),
        (Finding::Rejected { reason, .. }, Kept) => row(Write::DeadLetter(reason), dead),
        (Finding::Overdue, Kept) => row(Write::DeadLetter(DeadReason::Lost), dead),
        (Finding::Abandoned, Kept) => row(Write::Settled(rules.abandoned()), dead),
        (Finding::Unusable { reason }, Kept) => row(Write::Apart(reason), dead),
        (Finding::Unknown { attempt }, Kept) => row(Write::Uncertain, Then::Hold(back_off(attempt))),
        (Finding::Unsettled, Kept) => row(Write::Nothing, Then::Hold(back_off(1))),
        (Finding::TooLarge { attempt }, _) => row(Write::Released, Then::GiveBack(Some(back_off(attempt)))),

        // The broker counts deliveries and keeps the dead ones, so every failure goes back to it.
        (Finding::Failed { attempt } | Finding::Rejected { attempt, .. }, Broker) => {
            row(Write::Released, Then::GiveBack(Some(back_off(attempt))))
        }
        (Finding::Unknown { attempt }, Broker) => {
            row(Write::Uncertain, Then::GiveBack(Some(back_off(attempt))))
        }
        (Finding::Overdue, Broker) => row(Write::Released, Then::GiveBack(Some(back_off(1)))),
        (Finding::Abandoned | Finding::Unsettled | Finding::Unusable { .. }, Broker) => {
            row(Write::Nothing, Then::GiveBack(Some(back_off(1))))
        }

        // Another attempt's claim is neither an outcome nor a reason to run.
        (Finding::Busy { lease_left }, _) => {
            row(Write::Nothing, Then::Hold(Wait::Change { within: lease_left }))
        }
        (Finding::Unrecorded, _) => row(Write::Nothing, Then::Hold(Wait::Change { within: rules.lease })),
        (Finding::StoreFailed, _) => row(Write::Nothing, Then::Hold(Wait::Store)),
        (Finding::Draining, _) => row(Write::Nothing, Then::GiveBack(None)),
    }
}

#[cfg(test)]
mod tests;
