//! S5 to S9 as far as they are about single steps of the store: which change of the record may follow from
//! which request. Written from the protocol, not from the code that is checked.

use crate::bounds::Mode;
use crate::slot::{Expiry, Phase, Slot};
use crate::state::{Act, Ghost, Rule};

/// What made the store take a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// Attempt `nonce` asked for the key.
    Claim { nonce: u8, other: bool },
    /// Attempt `nonce` asked for more time.
    Renew { nonce: u8 },
    /// Attempt `nonce` brought its outcome.
    Complete { nonce: u8 },
    /// Attempt `nonce` gave the key back.
    Release { nonce: u8 },
    /// Attempt `nonce` gave up.
    Abandon { nonce: u8 },
    /// The operator decided; a settlement brings its own nonce.
    Operator { act: Act, settlement: u8 },
    /// The sweeper came by.
    Sweep,
    /// The only process that could own claims was started again.
    Restart,
}

/// One step of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The record before.
    pub before: Option<Slot>,
    /// The record after.
    pub after: Option<Slot>,
    /// Why it was taken.
    pub cause: Cause,
}

/// What a step is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldTo<'a> {
    /// The promise.
    pub mode: Mode,
    /// The `attempts_max` of every claim.
    pub attempts_max: u32,
    /// What happened so far.
    pub ghost: &'a Ghost,
}

const LEASE_TICKS: u8 = 1;

impl Step {
    /// Whether the record that was there is gone, and may be: its retention was over or the operator wished it.
    pub(crate) fn forgets(&self, ghost: &Ghost) -> bool {
        let Some(before) = self.before else { return false };
        match self.after {
            None => match self.cause {
                Cause::Sweep => ghost.over && !before.is_live(),
                Cause::Operator { act: Act::Delete { nonce }, .. } => {
                    before.nonce == nonce && !before.is_live()
                }
                _ => false,
            },
            // Only a finished record is as good as absent once its retention is over.
            Some(after) => ghost.over && !before.is_open() && after.attempt == 1 && self.acquires(),
        }
    }

    /// Whether the step gave the key to the attempt that asked for it.
    pub(crate) fn acquires(&self) -> bool {
        let Cause::Claim { nonce, .. } = self.cause else { return false };
        let holds = |slot: Slot| slot.nonce == nonce && matches!(slot.phase, Phase::InProgress { .. });
        self.after.is_some_and(holds) && !self.before.is_some_and(holds)
    }

    /// The rule that the step breaks, if any.
    pub(crate) fn breaks(&self, held: &HeldTo<'_>) -> Option<Rule> {
        let forgets = self.forgets(held.ghost);
        match (self.before, self.after) {
            (None, None) => None,
            (None, Some(after)) => self.acquisition(0, 0, after),
            (Some(_), None) if forgets => None,
            (Some(_), Some(after)) if forgets => self.acquisition(0, 0, after),
            (Some(before), after) => match before.phase {
                Phase::Pinned { .. } => (after != self.before).then_some(Rule::Final),
                Phase::Released => self.after_released(before, after),
                Phase::InProgress { .. } | Phase::Uncertain => self.after_open(before, after, held),
            },
        }
    }

    fn after_released(&self, before: Slot, after: Option<Slot>) -> Option<Rule> {
        let Some(after) = after else { return Some(Rule::Fence) };
        match self.cause {
            _ if after == before => None,
            // The attempt is over: nobody would work on what its delayed claim gets.
            Cause::Claim { nonce, .. } if nonce == before.nonce => Some(Rule::NoNonceTwice),
            _ => self.acquisition(before.attempt, 0, after),
        }
    }

    fn after_open(&self, before: Slot, after: Option<Slot>, held: &HeldTo<'_>) -> Option<Rule> {
        let Some(after) = after else { return Some(Rule::Fence) };
        if after == before && !self.must_change(before) {
            return None;
        }
        if let Cause::Claim { nonce, other } = self.cause
            && held.mode != Mode::AtMostOnce
            && nonce != before.nonce
            && nonce == after.nonce
            && other == before.other
            && !before.is_live()
        {
            let takeovers = before.takeovers + 1;
            let is_last = u32::from(takeovers) >= held.attempts_max;
            let acquired = || self.acquisition(before.attempt, takeovers, after);
            return if is_last { Some(Rule::Explained) } else { acquired() };
        }
        let undeclared = held.ghost.effects.without(held.ghost.declared);
        if after.phase == Phase::Released
            && undeclared.contains(before.nonce)
            && held.mode != Mode::Transactional
        {
            return Some(Rule::NoReleaseAfterEffect);
        }
        let is_pinned = matches!(after.phase, Phase::Pinned { .. });
        match self.expected(before, held) {
            Some(expected) if after == expected => None,
            // Kept for another time than asked: not final for as long as was promised.
            Some(expected) if is_pinned && after == (Slot { expiry: after.expiry, ..expected }) => {
                Some(Rule::Final)
            }
            _ => Some(Rule::Fence),
        }
    }

    /// What an open record becomes, takeovers apart; nothing when the request must leave it alone.
    fn expected(&self, before: Slot, held: &HeldTo<'_>) -> Option<Slot> {
        let owner = before.nonce;
        let running = !matches!(before.phase, Phase::Uncertain);
        let phase = Phase::InProgress { ticks_left: LEASE_TICKS };
        let renewed = Slot { phase, expiry: Expiry::Unfinished, ..before };
        let uncertain = Slot { phase: Phase::Uncertain, ..before };
        let released = Slot { phase: Phase::Released, expiry: Expiry::Tombstone, ..before };
        let pinned = Slot { phase: Phase::Pinned { value: owner }, expiry: Expiry::Retention, ..before };
        match self.cause {
            Cause::Claim { nonce, .. } if nonce == owner => running.then_some(renewed),
            Cause::Claim { other, .. } => {
                let reruns = held.mode != Mode::AtMostOnce && u32::from(before.attempt) < held.attempts_max;
                let lapsed = running && !before.is_live() && other == before.other;
                (lapsed && !reruns).then_some(uncertain)
            }
            Cause::Renew { nonce } => (nonce == owner && running).then_some(renewed),
            Cause::Complete { nonce } => (nonce == owner).then_some(pinned),
            Cause::Release { nonce } => (nonce == owner).then_some(released),
            Cause::Abandon { nonce } => (nonce == owner && running).then_some(uncertain),
            Cause::Restart => running.then_some(uncertain),
            Cause::Operator { .. } if before.is_live() => None,
            // From here on the attempt that was settled is fenced out.
            Cause::Operator { act, settlement } => match act {
                Act::SettleApplied { nonce } => {
                    (nonce == owner).then_some(Slot { nonce: settlement, ..pinned })
                }
                Act::SettleNotApplied { nonce } => {
                    (nonce == owner).then_some(Slot { nonce: settlement, ..released })
                }
                Act::Delete { .. } => None,
            },
            Cause::Sweep => None,
        }
    }

    /// Whether leaving the record as it was is wrong: a claim that outlives its process, or one that its owner
    /// renewed and that is not believed for a whole lease.
    fn must_change(&self, before: Slot) -> bool {
        match (self.cause, before.phase) {
            (Cause::Restart, Phase::InProgress { .. }) => true,
            (Cause::Renew { nonce }, Phase::InProgress { ticks_left }) => {
                nonce == before.nonce && ticks_left < LEASE_TICKS
            }
            _ => false,
        }
    }

    /// Judges a record that was claimed after `attempts` earlier attempts, the last `takeovers` of them by takeover.
    fn acquisition(&self, attempts: u8, takeovers: u8, after: Slot) -> Option<Rule> {
        let Cause::Claim { nonce, other } = self.cause else { return Some(Rule::Fence) };
        let phase = Phase::InProgress { ticks_left: LEASE_TICKS };
        let (attempt, expiry) = (attempts + 1, Expiry::Unfinished);
        let expected = Slot { nonce, attempt, takeovers, other, phase, expiry };
        if after == expected {
            None
        } else if after == (Slot { attempt: after.attempt, takeovers: after.takeovers, ..expected }) {
            Some(Rule::Explained)
        } else {
            Some(Rule::Fence)
        }
    }
}
