//! Which engine the file store stands on, and how fast it stands there: `cargo xtask bench store`.
//!
//! | part | what is compared |
//! |---|---|
//! | [`engines`] | the layouts of five engines, and SQLite without any harness, in batches of one size |
//! | [`callers`] | the file store itself against the plainest SQLite table under the same group commit, by callers |
//! | [`growth`] | one caller's claim in a large store against the same in a small one |
//!
//! Everything syncs before it answers. Only ratios of one run travel to another machine: competitors take turns,
//! round by round, and the median of the rounds counts. The spread printed beside it says how far to trust it.

pub mod callers;
pub mod engines;
pub mod group;
pub mod growth;
pub mod layout;
mod sample;

pub use self::sample::Sample;

use bytes::Bytes;

use crate::crash::Seed;
use layout::{Id, Write};

/// Bytes of a claim: two ids, a fence, a fingerprint, a scope and times.
const CLAIM_BYTES: usize = 120;

/// Bytes of an outcome: a small JSON answer and its head.
const OUTCOME_BYTES: usize = 700;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Turns that every competitor gets.
    pub rounds: usize,
    /// Pairs of one turn, as a part of the full number.
    pub share: f64,
    /// Records in the large store.
    pub live_records: u64,
    /// Claims in each store that one median of the growth measurement is of.
    pub timed_claims: usize,
}

impl Effort {
    /// What the goals are judged by; a few minutes.
    pub const FULL: Self = Self { rounds: 3, share: 1.0, live_records: 5_000_000, timed_claims: 2_000 };
    /// A look at whether everything runs; half a minute. Tables stay small, which flatters the plain ones, and the
    /// large store is not large: its goals say little.
    pub const QUICK: Self = Self { rounds: 3, share: 0.1, live_records: 100_000, timed_claims: 500 };

    /// How many pairs one turn has at this batch size or number of callers: enough for a few seconds at most.
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
        let mut seed = Seed::new(seed);
        Self {
            ids: (0..count).map(|_| seed.bytes()).collect(),
            claim: Bytes::from(seed.bytes::<CLAIM_BYTES>().to_vec()),
            completed: Bytes::from(seed.bytes::<CLAIM_BYTES>().to_vec()),
            outcome: Bytes::from(seed.bytes::<OUTCOME_BYTES>().to_vec()),
        }
    }

    fn claim(&self, id: Id) -> Write {
        Write { id, record: self.claim.clone(), outcome: None }
    }

    fn completion(&self, id: Id) -> Write {
        Write { id, record: self.completed.clone(), outcome: Some(self.outcome.clone()) }
    }
}
