//! [`Plan`]: which store call meets which [`Fault`], by number or by seeded chance.

use std::time::Duration;

use hapax_core::StoreErrorKind;

use crate::Random;
use crate::op::Op;

/// The two sides of a call at which a fault may be injected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Point {
    /// The call has been made; the store has not seen it.
    Before,
    /// The store has applied the call; the caller has not seen the answer.
    After,
}

impl Point {
    /// Both, in the order in which a call passes them.
    pub const ALL: [Self; 2] = [Self::Before, Self::After];
}

/// What is injected into one call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The call fails with this kind and nothing is applied. With [`StoreErrorKind::Unknown`] the caller cannot
    /// tell it from [`AnswerLost`](Self::AnswerLost).
    ErrorBefore(StoreErrorKind),
    /// The call is applied, and the caller gets [`StoreErrorKind::Unknown`].
    AnswerLost,
    /// The call sleeps for this long on tokio's clock.
    Delay(Point, Duration),
    /// The call waits until [`Faulty::resume`](super::Faulty::resume).
    Stall(Point),
    /// The caller of the call is dropped here: see [`Faulty::drive`](super::Faulty::drive).
    Drop(Point),
    /// The call panics.
    Panic(Point),
    /// The process dies: neither this call nor any other call of this [`Faulty`](super::Faulty) is ever answered, and
    /// none is applied any more.
    Crash(Point),
}

impl Fault {
    /// One fault of every kind at every point where it makes a difference, delays being `delay` long, without stalls,
    /// which a test has to end. Choose `delay` longer than the lease.
    pub fn each(delay: Duration) -> Vec<Self> {
        let mut faults = vec![Self::ErrorBefore(StoreErrorKind::Unavailable), Self::AnswerLost];
        for point in Point::ALL {
            faults.extend([
                Self::Delay(point, delay),
                Self::Drop(point),
                Self::Panic(point),
                Self::Crash(point),
            ]);
        }
        faults
    }

    /// On which side of the store's own work the fault is injected.
    pub const fn point(self) -> Point {
        match self {
            Self::ErrorBefore(_) => Point::Before,
            Self::AnswerLost => Point::After,
            Self::Delay(point, _)
            | Self::Stall(point)
            | Self::Drop(point)
            | Self::Panic(point)
            | Self::Crash(point) => point,
        }
    }

    /// The kind's name, for counting and printing.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ErrorBefore(_) => "error before",
            Self::AnswerLost => "answer lost",
            Self::Delay(..) => "delay",
            Self::Stall(_) => "stall",
            Self::Drop(_) => "drop",
            Self::Panic(_) => "panic",
            Self::Crash(_) => "crash",
        }
    }
}

/// Which calls meet which faults. Calls are counted from 1, from the moment the plan is set.
///
/// A call meets the first entry that names it, in the order in which they were added, and chance only when no
/// entry does.
///
/// ```
/// use hapax_core::StoreErrorKind;
/// use hapax_testkit::{Fault, Op, Plan};
///
/// let plan = Plan::new()
///     .at(3, Fault::AnswerLost)
///     .at_nth(Op::Complete, 1, Fault::ErrorBefore(StoreErrorKind::Unavailable));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Plan {
    entries: Vec<Entry>,
    chance: Option<Chance>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    op: Option<Op>,
    /// The call's number, counted among the calls of `op`; none means every one.
    nth: Option<u64>,
    fault: Fault,
}

#[derive(Clone, Debug)]
struct Chance {
    random: Random,
    per_mille: u32,
    ops: Vec<Op>,
    faults: Vec<Fault>,
}

impl Plan {
    /// A plan without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The call with this number, whichever it is, meets `fault`.
    #[must_use]
    pub fn at(self, call: u64, fault: Fault) -> Self {
        self.entry(Entry { op: None, nth: Some(call), fault })
    }

    /// The `nth` call of `op` meets `fault`.
    #[must_use]
    pub fn at_nth(self, op: Op, nth: u64, fault: Fault) -> Self {
        self.entry(Entry { op: Some(op), nth: Some(nth), fault })
    }

    /// Every call of `op` meets `fault`.
    #[must_use]
    pub fn always(self, op: Op, fault: Fault) -> Self {
        self.entry(Entry { op: Some(op), nth: None, fault })
    }

    /// Each call of `ops` meets one of `faults` about `per_mille` times in a thousand, chosen by `seed`.
    #[must_use]
    pub fn by_chance(mut self, seed: u64, per_mille: u32, ops: &[Op], faults: &[Fault]) -> Self {
        let (ops, faults) = (ops.to_vec(), faults.to_vec());
        self.chance = Some(Chance { random: Random::seeded(seed), per_mille, ops, faults });
        self
    }

    fn entry(mut self, entry: Entry) -> Self {
        self.entries.push(entry);
        self
    }

    /// The fault of a call: `call` is its number among all calls, `nth` among the calls of `op`.
    pub(super) fn fault(&mut self, op: Op, call: u64, nth: u64) -> Option<Fault> {
        let named = self.entries.iter().find(|entry| match entry.op {
            Some(wanted) => wanted == op && entry.nth.is_none_or(|wanted| wanted == nth),
            None => entry.nth == Some(call),
        });
        if let Some(entry) = named {
            return Some(entry.fault);
        }
        let chance = self.chance.as_mut()?;
        if chance.ops.contains(&op) && chance.random.chance(chance.per_mille) {
            chance.random.pick(&chance.faults).copied()
        } else {
            None
        }
    }
}
