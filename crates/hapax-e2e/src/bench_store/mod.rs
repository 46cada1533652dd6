//! The engines that the file store could use, and the file store itself: `cargo xtask bench store`.
//!
//! | part | what is compared |
//! |---|---|
//! | [`engines`] | the layouts of five engines, and SQLite without any harness, in batches of one size |
//! | [`callers`] | the file store itself against a plain SQLite table under the same group commit, by callers |
//! | [`growth`] | one caller's claim in a large store against the same in a small one |
//!
//! Everything syncs before it answers. Only ratios of one run are comparable between machines: candidates take turns,
//! round by round, and the median of the rounds counts. The spread is printed beside it.

pub mod callers;
pub mod engines;
pub mod group;
pub mod growth;
pub mod layout;
mod sample;

pub use self::sample::{Sample, after_warm_up};

use bytes::Bytes;
use hapax_testkit::Random;

use layout::{Id, Write};

/// Bytes of a claim: two ids, a fence, a fingerprint, a scope and times.
const CLAIM_BYTES: usize = 120;

/// Bytes of an outcome: a small JSON answer and its head.
const OUTCOME_BYTES: usize = 700;

/// The size of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Turns of every candidate.
    pub rounds: usize,
    /// Pairs of one turn, as a part of the full number.
    pub share: f64,
    /// Records in the large store.
    pub live_records: u64,
    /// Claims in each store for one median of the growth measurement.
    pub timed_claims: usize,
}

impl Effort {
    /// For the goals; a few minutes.
    pub const FULL: Self = Self { rounds: 3, share: 1.0, live_records: 5_000_000, timed_claims: 2_000 };
    /// A smoke test; half a minute. Tables stay small, which favours the plain ones, and the large store is not large: its
    /// goals mean little.
    pub const QUICK: Self = Self { rounds: 3, share: 0.1, live_records: 100_000, timed_claims: 500 };

    /// Pairs of one turn at this batch size or number of callers: enough for a few seconds at most.
    fn pairs(&self, together: usize) -> usize {
        let full = match together {
            0..=1 => 3_000,
            2..=8 => 12_000,
            9..=64 => 40_000,
            _ => 80_000,
        };
        ((full as f64 * self.share) as usize).max(together)
    }
}

/// Random keys, a claim and a completion for each.
#[derive(Clone, Debug)]
struct Pairs {
    ids: Vec<Id>,
    claim: Bytes,
    completed: Bytes,
    outcome: Bytes,
}

impl Pairs {
    fn new(seed: u64, count: usize) -> Self {
        let mut random = Random::seeded(seed);
        Self {
            ids: (0..count).map(|_| random.bytes()).collect(),
            claim: Bytes::from(random.bytes::<CLAIM_BYTES>().to_vec()),
            completed: Bytes::from(random.bytes::<CLAIM_BYTES>().to_vec()),
            outcome: Bytes::from(random.bytes::<OUTCOME_BYTES>().to_vec()),
        }
    }

    fn claim(&self, id: Id) -> Write {
        Write { id, record: self.claim.clone(), outcome: None }
    }

    fn completion(&self, id: Id) -> Write {
        Write { id, record: self.completed.clone(), outcome: Some(self.outcome.clone()) }
    }
}
