//! One state of the whole system: the stored record, the executors, the network, the operator and the [`Ghost`]
//! variables, which no component of the system can observe.

use crate::bounds::{Bounds, EXECUTORS_MAX, Mode};
use crate::slot::Slot;

/// A state of the model.
///
/// There is no list of requests in flight. The network may hold any request that its sender may have sent, for ever:
/// [`State::requests`] derives them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    /// The stored record.
    pub slot: Option<Slot>,
    /// Sorted: executors are interchangeable.
    pub executors: [Executor; EXECUTORS_MAX],
    /// The operator's requests; delivered like any other request.
    pub acts: [Option<OperatorAct>; 2],
    /// The number of started attempts, and the nonce of the next one.
    pub started: u8,
    /// Whether the last attempt sends another request than the others.
    pub last_is_other: bool,
    /// How many more times a retention may end.
    pub forgets_left: u8,
    /// The input of the properties.
    pub ghost: Ghost,
}

/// The state of one executor. A paused executor takes no action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Executor {
    /// Not started, answered, stopped, or crashed and restarted.
    Idle,
    /// It sent its claim or its transaction and waits.
    Claiming { nonce: u8 },
    /// It acquired the key with this attempt number; 0 once that record is forgotten.
    Holding { nonce: u8, attempt: u8 },
    /// It performed its effect, sent the outcome and waits.
    Completing { nonce: u8 },
}

impl Executor {
    /// The attempt it works on.
    pub(crate) const fn nonce(self) -> Option<u8> {
        match self {
            Self::Idle => None,
            Self::Claiming { nonce } | Self::Holding { nonce, .. } | Self::Completing { nonce } => {
                Some(nonce)
            }
        }
    }
}

/// A request of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Claim the key.
    Claim,
    /// Extend the lease.
    Renew,
    /// Pin the outcome; in transactional mode this commits the effect too.
    Complete,
    /// Free the key.
    Release,
    /// Report the outcome as unknown.
    Abandon,
    /// Claim, effect and outcome in one transaction.
    Transact,
}

/// A request of the operator about attempt `nonce`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum OperatorAct {
    /// The effect happened: its value is the outcome.
    SettleApplied { nonce: u8 },
    /// The effect did not happen.
    SettleNotApplied { nonce: u8 },
    /// Delete the record.
    Delete { nonce: u8 },
}

/// A set of small numbers: attempts by nonce, or attempt numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Set(u8);

impl Set {
    /// The numbers below `end`.
    pub(crate) const fn below(end: u8) -> Self {
        Self((1 << end) - 1)
    }

    /// Inserts `member`; whether it was absent.
    pub(crate) fn insert(&mut self, member: u8) -> bool {
        let fresh = !self.contains(member);
        self.0 |= 1 << (member & 7);
        fresh
    }

    /// Removes `member`.
    pub(crate) fn remove(&mut self, member: u8) {
        self.0 &= !(1 << (member & 7));
    }

    /// Whether the set contains `member`.
    pub(crate) const fn contains(self, member: u8) -> bool {
        self.0 & (1 << (member & 7)) != 0
    }

    /// The number of members.
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether the set is empty.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members that are not in `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries((0..8).filter(|member| self.contains(*member))).finish()
    }
}

/// Ghost variables: history for the properties, invisible to the system.
///
/// All but `effects_ever`, `declared` and `violated` are reset when the record is forgotten: the promises hold until the
/// retention ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Ghost {
    /// Attempts whose effect has happened.
    pub effects_ever: Set,
    /// As `effects_ever`, since the record was last forgotten and by attempts that started since.
    pub effects: Set,
    /// The attempt numbers of those effects.
    pub effect_attempts: Set,
    /// Attempts that declared themselves retryable after their effect.
    pub declared: Set,
    /// Attempts whose value was returned to a caller as the outcome.
    pub answered: Set,
    /// Attempts that started before the record was last forgotten.
    pub before: Set,
    /// Whether the retention of the stored record is over.
    pub over: bool,
    /// Rules that a step has violated.
    pub violated: Set,
}

/// A property that is checked per step; [`Ghost::violated`] accumulates the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// S2: returned values are true.
    Truth,
    /// S5: no nonce is used twice.
    NoNonceTwice,
    /// S6: pinned records are final.
    Final,
    /// S7: writes are fenced.
    Fence,
    /// S8: no release after an effect.
    NoReleaseAfterEffect,
    /// S9: every attempt number is explained by an acquisition.
    Explained,
}

impl Ghost {
    /// Records that a step violated `rule`.
    pub(crate) fn record_violation(&mut self, rule: Rule) {
        self.violated.insert(rule as u8);
    }

    /// Whether no step has violated `rule`.
    pub(crate) const fn holds(&self, rule: Rule) -> bool {
        !self.violated.contains(rule as u8)
    }

    /// Records an effect.
    pub(crate) fn effect(&mut self, nonce: u8, attempt: u8) {
        self.effects_ever.insert(nonce);
        if self.before.contains(nonce) {
            return;
        }
        if !self.effects.insert(nonce) {
            self.record_violation(Rule::NoNonceTwice);
        }
        if attempt > 0 && !self.effect_attempts.insert(attempt) {
            self.record_violation(Rule::Explained);
        }
    }
}

impl State {
    /// The initial state.
    pub(crate) fn initial(bounds: &Bounds) -> Self {
        Self {
            slot: None,
            executors: [Executor::Idle; EXECUTORS_MAX],
            acts: [None; 2],
            started: 0,
            last_is_other: false,
            forgets_left: bounds.forgets_max,
            ghost: Ghost::default(),
        }
    }

    /// Resets promises and attempt numbers: the record is gone.
    pub(crate) fn forget(&mut self) {
        self.ghost = Ghost {
            effects_ever: self.ghost.effects_ever,
            declared: self.ghost.declared,
            before: Set::below(self.started),
            violated: self.ghost.violated,
            ..Ghost::default()
        };
        for executor in &mut self.executors {
            if let Executor::Holding { attempt, .. } = executor {
                *attempt = 0;
            }
        }
    }

    /// Whether attempt `nonce` sends another request than the first one.
    pub(crate) const fn is_other(&self, nonce: u8) -> bool {
        self.last_is_other && nonce + 1 == self.started
    }

    /// The executor that works on attempt `nonce`.
    pub(crate) fn executor_of(&self, nonce: u8) -> Option<usize> {
        self.executors.iter().position(|executor| executor.nonce() == Some(nonce))
    }

    /// Every request that may be delivered now. This models loss, delay, duplication and driver retries alike: a request
    /// is delivered at any time, any number of times, or never.
    pub(crate) fn requests(&self, mode: Mode) -> impl Iterator<Item = (Op, u8)> {
        const OPS: [Op; 6] = [Op::Claim, Op::Renew, Op::Complete, Op::Release, Op::Abandon, Op::Transact];
        (0..self.started)
            .flat_map(|nonce| OPS.map(|op| (op, nonce)))
            .filter(move |(op, nonce)| self.may_be_sent(mode, *op, *nonce))
    }

    fn may_be_sent(&self, mode: Mode, op: Op, nonce: u8) -> bool {
        let has_left = self.executor_of(nonce).is_none();
        let effected = self.ghost.effects_ever.contains(nonce);
        let declared = self.ghost.declared.contains(nonce);
        match (op, mode) {
            (Op::Claim | Op::Renew | Op::Abandon, _) => true,
            (Op::Transact, _) => mode == Mode::Transactional,
            // An outcome that was not pinned was rolled back, so completion and release may come in any order.
            (Op::Complete, Mode::Transactional) => true,
            (Op::Release, Mode::Transactional) => has_left,
            (Op::Complete, _) => effected && !declared,
            // Only an attempt without an effect, now and later, or one that declared itself retryable.
            (Op::Release, _) => has_left && (!effected || declared),
        }
    }

    /// The attempt that a read of the record shows as uncertain, if any.
    pub(crate) fn uncertain(&self) -> Option<u8> {
        self.slot.filter(|slot| slot.is_open() && !slot.is_live()).map(|slot| slot.nonce)
    }

    /// Whether the effect of attempt `nonce` did not and will not happen.
    pub(crate) fn is_dead(&self, mode: Mode, nonce: u8) -> bool {
        // An effect that commits with the outcome is fenced out by the settlement itself.
        let cannot_act = mode == Mode::Transactional || self.executor_of(nonce).is_none();
        cannot_act && !self.ghost.effects_ever.contains(nonce)
    }
}
