//! S5 to S9 for single steps of the store: which change of the record each request may cause. Written from the protocol,
//! independently of the checked code.

use crate::bounds::Mode;
use crate::slot::{Expiry, Phase, Slot};
use crate::state::{Ghost, OperatorAct, Rule};

/// The cause of a store step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// Attempt `nonce` claimed the key.
    Claim { nonce: u8, other: bool },
    /// Attempt `nonce` renewed its lease.
    Renew { nonce: u8 },
    /// Attempt `nonce` completed.
    Complete { nonce: u8 },
    /// Attempt `nonce` released the key.
    Release { nonce: u8 },
    /// Attempt `nonce` abandoned the key.
    Abandon { nonce: u8 },
    /// The operator settled or deleted; a settlement has its own nonce.
    Operator { act: OperatorAct, settlement: u8 },
    /// A sweep ran.
    Sweep,
    /// The only process that could own claims restarted.
    Restart,
}

/// One step of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The record before.
    pub before: Option<Slot>,
    /// The record after.
    pub after: Option<Slot>,
    /// The cause.
    pub cause: Cause,
}

/// What the rules depend on besides the step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleContext<'a> {
    /// The mode.
    pub mode: Mode,
    /// The `attempts_max` of every claim.
    pub attempts_max: u32,
    /// The history so far.
    pub ghost: &'a Ghost,
}

const LEASE_TICKS: u8 = 1;

impl Step {
    /// Whether the step removed the record, and legitimately: its retention was over or the operator deleted it.
    pub(crate) fn forgets(&self, ghost: &Ghost) -> bool {
        let Some(before) = self.before else { return false };
        match self.after {
            None => match self.cause {
                Cause::Sweep => ghost.over && !before.is_live(),
                Cause::Operator { act: OperatorAct::Delete { nonce }, .. } => {
                    before.nonce == nonce && !before.is_live()
                }
                _ => false,
            },
            // Only a finished record counts as absent once its retention is over.
            Some(after) => ghost.over && !before.is_open() && after.attempt == 1 && self.acquires(),
        }
    }

    /// Whether the claiming attempt acquired the key in this step.
    pub(crate) fn acquires(&self) -> bool {
        let Cause::Claim { nonce, .. } = self.cause else { return false };
        let holds = |slot: Slot| slot.nonce == nonce && matches!(slot.phase, Phase::InProgress { .. });
        self.after.is_some_and(holds) && !self.before.is_some_and(holds)
    }

    /// The rule that the step violates, if any.
    pub(crate) fn violated_rule(&self, context: &RuleContext<'_>) -> Option<Rule> {
        let forgets = self.forgets(context.ghost);
        match (self.before, self.after) {
            (None, None) => None,
            (None, Some(after)) => self.check_acquisition(0, 0, after),
            (Some(_), None) if forgets => None,
            (Some(_), Some(after)) if forgets => self.check_acquisition(0, 0, after),
            (Some(before), after) => match before.phase {
                Phase::Pinned { .. } => (after != self.before).then_some(Rule::Final),
                Phase::Released => self.after_released(before, after),
                Phase::InProgress { .. } | Phase::Uncertain => self.after_open(before, after, context),
            },
        }
    }

    fn after_released(&self, before: Slot, after: Option<Slot>) -> Option<Rule> {
        let Some(after) = after else { return Some(Rule::Fence) };
        match self.cause {
            _ if after == before => None,
            // The attempt is over: its delayed claim would acquire the key without an owner.
            Cause::Claim { nonce, .. } if nonce == before.nonce => Some(Rule::NoNonceTwice),
            _ => self.check_acquisition(before.attempt, 0, after),
        }
    }

    fn after_open(&self, before: Slot, after: Option<Slot>, context: &RuleContext<'_>) -> Option<Rule> {
        let Some(after) = after else { return Some(Rule::Fence) };
        if after == before && !self.must_change(before) {
            return None;
        }
        if let Cause::Claim { nonce, other } = self.cause
            && context.mode != Mode::AtMostOnce
            && nonce != before.nonce
            && nonce == after.nonce
            && other == before.other
            && !before.is_live()
        {
            let takeovers = before.takeovers + 1;
            let is_last = u32::from(takeovers) >= context.attempts_max;
            let acquired = || self.check_acquisition(before.attempt, takeovers, after);
            return if is_last { Some(Rule::Explained) } else { acquired() };
        }
        let undeclared = context.ghost.effects.without(context.ghost.declared);
        if after.phase == Phase::Released
            && undeclared.contains(before.nonce)
            && context.mode != Mode::Transactional
        {
            return Some(Rule::NoReleaseAfterEffect);
        }
        let is_pinned = matches!(after.phase, Phase::Pinned { .. });
        match self.expected(before, context) {
            Some(expected) if after == expected => None,
            // Pinned with another retention than requested.
            Some(expected) if is_pinned && after == (Slot { expiry: after.expiry, ..expected }) => {
                Some(Rule::Final)
            }
            _ => Some(Rule::Fence),
        }
    }

    /// The expected change of an open record, takeovers excepted; `None` when the request must not change it.
    fn expected(&self, before: Slot, context: &RuleContext<'_>) -> Option<Slot> {
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
                let reruns =
                    context.mode != Mode::AtMostOnce && u32::from(before.attempt) < context.attempts_max;
                let lapsed = running && !before.is_live() && other == before.other;
                (lapsed && !reruns).then_some(uncertain)
            }
            Cause::Renew { nonce } => (nonce == owner && running).then_some(renewed),
            Cause::Complete { nonce } => (nonce == owner).then_some(pinned),
            Cause::Release { nonce } => (nonce == owner).then_some(released),
            Cause::Abandon { nonce } => (nonce == owner && running).then_some(uncertain),
            Cause::Restart => running.then_some(uncertain),
            Cause::Operator { .. } if before.is_live() => None,
            // The settlement fences out the attempt.
            Cause::Operator { act, settlement } => match act {
                OperatorAct::SettleApplied { nonce } => {
                    (nonce == owner).then_some(Slot { nonce: settlement, ..pinned })
                }
                OperatorAct::SettleNotApplied { nonce } => {
                    (nonce == owner).then_some(Slot { nonce: settlement, ..released })
                }
                OperatorAct::Delete { .. } => None,
            },
            Cause::Sweep => None,
        }
    }

    /// Whether an unchanged record is a violation: a claim that outlives its process, or a renewal that does not restore
    /// the full lease.
    fn must_change(&self, before: Slot) -> bool {
        match (self.cause, before.phase) {
            (Cause::Restart, Phase::InProgress { .. }) => true,
            (Cause::Renew { nonce }, Phase::InProgress { ticks_left }) => {
                nonce == before.nonce && ticks_left < LEASE_TICKS
            }
            _ => false,
        }
    }

    /// Checks a record that was acquired after `attempts` earlier attempts, the last `takeovers` of them by takeover.
    fn check_acquisition(&self, attempts: u8, takeovers: u8, after: Slot) -> Option<Rule> {
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
