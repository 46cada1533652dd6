//! [`Random`]: the seeded generator of every random choice here, so that a printed seed repeats a run.

use std::ops::Range;

/// A small deterministic generator (SplitMix64). Not for secrets.
///
/// ```
/// use hapax_testkit::Random;
///
/// let (mut first, mut again) = (Random::seeded(7), Random::seeded(7));
/// assert_eq!(first.next_u64(), again.next_u64());
/// assert!(first.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of `seed`.
    pub const fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A generator for the part of a run that `name` stands for, independent of how often this one is called.
    #[must_use]
    pub fn fork(&self, name: u64) -> Self {
        let mut fork = Self { state: self.state ^ name.wrapping_mul(0xd6e8_feb8_6659_fd93) };
        fork.next_u64();
        fork
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; zero when the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // The high half of the product: no modulo bias worth naming for bounds far below 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number within `range`; its start when the range is empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// True about `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// One of `choices`, or none when there are none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len() as u64) as usize)
    }

    /// Random bytes: sixteen for a nonce.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
