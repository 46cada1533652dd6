//! Choices that can be made again: a small generator (SplitMix64) whose whole state is one number.

use std::ops::Range;

/// A stream of choices that depends on its seed only.
#[derive(Clone, Debug)]
pub struct Seed(u64);

impl Seed {
    /// The stream of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent stream for the part of this one that `name` stands for.
    #[must_use]
    pub fn part(&self, name: u64) -> Self {
        let mut part = Self(self.0 ^ name.wrapping_mul(0xd6e8_feb8_6659_fd93));
        part.next();
        part
    }

    /// The next number.
    #[allow(clippy::should_implement_trait, reason = "a stream without an end is no iterator to loop over")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number within `range`, which is not empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// True `percent` times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Fills `bytes` at random.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
