//! One state of the whole system: the stored record, the executors, the network, the operator and the
//! [`Ghost`], which sees what nobody in the system can see.

use crate::bounds::{Bounds, EXECUTORS_MAX, Mode};
use crate::slot::Slot;

/// Everything there is at one moment.
///
/// There is no list of requests under way. The network may hold any request from the moment its sender may have
/// sent it, for ever: [`State::requests`] derives them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    /// What the store holds.
    pub slot: Option<Slot>,
    /// Sorted, because executors differ in nothing but what they are doing.
    pub executors: [Executor; EXECUTORS_MAX],
    /// What the operator asked for; delivered like any other request.
    pub acts: [Option<Act>; 2],
    /// How many attempts were started; the next one gets this number as its nonce.
    pub started: u8,
    /// Whether the last attempt asks for something else than the others.
    pub last_is_other: bool,
    /// How many more times a retention may end.
    pub forgets_left: u8,
    /// What the properties are about.
    pub ghost: Ghost,
}

/// What one executor is doing. One that is paused simply does not move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Executor {
    /// Nothing: not started, answered, given up, or crashed and started again.
    Idle,
    /// It sent its claim or its transaction and waits.
    Claiming { nonce: u8 },
    /// It was told that the key is its own, with this attempt number; 0 once that record is forgotten.
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

/// What an attempt may ask the store for.
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
    /// Say that nobody will know.
    Abandon,
    /// Claim, effect and outcome in one transaction.
    Transact,
}

/// What an operator may ask for after looking at attempt `nonce`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    /// It happened: its value is the outcome.
    SettleApplied { nonce: u8 },
    /// It did not happen.
    SettleNotApplied { nonce: u8 },
    /// Forget it.
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

    /// Puts `member` in; whether it was not there before.
    pub(crate) fn insert(&mut self, member: u8) -> bool {
        let fresh = !self.contains(member);
        self.0 |= 1 << (member & 7);
        fresh
    }

    /// Takes `member` out.
    pub(crate) fn remove(&mut self, member: u8) {
        self.0 &= !(1 << (member & 7));
    }

    /// Whether `member` is in.
    pub(crate) const fn contains(self, member: u8) -> bool {
        self.0 & (1 << (member & 7)) != 0
    }

    /// How many there are.
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there is none.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that are not in `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries((0..8).filter(|member| self.contains(*member))).finish()
    }
}

/// What only an all-seeing observer knows.
///
/// Everything but `effects_ever`, `declared` and `broken` begins anew when the record is forgotten: the promises hold until
/// the retention ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Ghost {
    /// Attempts whose effect has happened.
    pub effects_ever: Set,
    /// The same, since the record was last forgotten and by attempts that began since.
    pub effects: Set,
    /// Attempt numbers under which those effects reached the outside.
    pub effect_attempts: Set,
    /// Attempts that declared themselves retryable after their effect.
    pub declared: Set,
    /// Attempts whose value was given to somebody as the outcome.
    pub answered: Set,
    /// Attempts that began before the record was last forgotten.
    pub before: Set,
    /// Whether the retention of the stored record is over.
    pub over: bool,
    /// Rules that a step has broken.
    pub broken: Set,
}

/// A property that is judged step by step; [`Ghost::broken`] remembers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// S2 truth.
    Truth,
    /// S5 no nonce twice.
    NoNonceTwice,
    /// S6 final.
    Final,
    /// S7 fence.
    Fence,
    /// S8 no release after effect.
    NoReleaseAfterEffect,
    /// S9 explained.
    Explained,
}

impl Ghost {
    /// Remembers that a step broke `rule`.
    pub(crate) fn breaks(&mut self, rule: Rule) {
        self.broken.insert(rule as u8);
    }

    /// Whether no step has broken `rule`.
    pub(crate) const fn keeps(&self, rule: Rule) -> bool {
        !self.broken.contains(rule as u8)
    }

    /// An effect reaches the outside.
    pub(crate) fn effect(&mut self, nonce: u8, attempt: u8) {
        self.effects_ever.insert(nonce);
        if self.before.contains(nonce) {
            return;
        }
        if !self.effects.insert(nonce) {
            self.breaks(Rule::NoNonceTwice);
        }
        if attempt > 0 && !self.effect_attempts.insert(attempt) {
            self.breaks(Rule::Explained);
        }
    }
}

impl State {
    /// Nothing has happened yet.
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

    /// The record is forgotten: promises and attempt numbers begin anew.
    pub(crate) fn forget(&mut self) {
        self.ghost = Ghost {
            effects_ever: self.ghost.effects_ever,
            declared: self.ghost.declared,
            before: Set::below(self.started),
            broken: self.ghost.broken,
            ..Ghost::default()
        };
        for executor in &mut self.executors {
            if let Executor::Holding { attempt, .. } = executor {
                *attempt = 0;
            }
        }
    }

    /// Whether attempt `nonce` asks for something else than the first one did.
    pub(crate) const fn is_other(&self, nonce: u8) -> bool {
        self.last_is_other && nonce + 1 == self.started
    }

    /// The executor that works on attempt `nonce`.
    pub(crate) fn executor_of(&self, nonce: u8) -> Option<usize> {
        self.executors.iter().position(|executor| executor.nonce() == Some(nonce))
    }

    /// Every request that may arrive now. Loss, delay, duplication and a driver's own retries are all one thing:
    /// a request arrives at any time, any number of times, or never.
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
            // What was not pinned was rolled back: it may be tried and given up in any order.
            (Op::Complete, Mode::Transactional) => true,
            (Op::Release, Mode::Transactional) => has_left,
            (Op::Complete, _) => effected && !declared,
            // Only an attempt that did nothing, and never will, or one that declared itself retryable.
            (Op::Release, _) => has_left && (!effected || declared),
        }
    }

    /// The attempt that a look at the record shows to be uncertain, if any.
    pub(crate) fn uncertain(&self) -> Option<u8> {
        self.slot.filter(|slot| slot.is_open() && !slot.is_live()).map(|slot| slot.nonce)
    }

    /// Whether the operator would be right to say that attempt `nonce` did not and will not happen.
    pub(crate) fn is_dead(&self, mode: Mode, nonce: u8) -> bool {
        // An effect that commits with the outcome is fenced out by the settlement itself.
        let cannot_act = mode == Mode::Transactional || self.executor_of(nonce).is_none();
        cannot_act && !self.ghost.effects_ever.contains(nonce)
    }
}
