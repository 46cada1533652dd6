//! How long a delivery is held in hand: the back-off between two attempts at one event.

use std::time::Duration;

use hapax_core::Nonce;
use hapax_core::store::TOMBSTONE_RETENTION;

/// The longest back-off between two attempts by default.
pub(super) const BACK_OFF_MAX: Duration = Duration::from_secs(300);

// The number of attempts is in the tombstone of the last one. While a consumer holds the event, it must not expire.
const _: () = assert!(BACK_OFF_MAX.as_millis() <= TOMBSTONE_RETENTION.as_millis() / 2);

/// The longest pause between two claims while the store fails: soon, because all deliveries in hand wait for one answer.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(10);

/// The pauses between attempts: exponential, with full jitter.
///
/// ```
/// use std::time::Duration;
/// use hapax::events::BackOff;
///
/// let back_off = BackOff::new(Duration::from_millis(100), Duration::from_secs(30));
/// assert_eq!(back_off.limit(1), Duration::from_millis(100));
/// assert_eq!(back_off.limit(4), Duration::from_millis(800));
/// assert_eq!(back_off.limit(40), Duration::from_secs(30));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackOff {
    first: Duration,
    max: Duration,
}

impl Default for BackOff {
    /// From 1 s, doubled, to 5 minutes.
    fn default() -> Self {
        Self { first: Duration::from_secs(1), max: BACK_OFF_MAX }
    }
}

impl BackOff {
    /// From `first`, doubled after each attempt, to `max`.
    ///
    /// # Panics
    /// When `first` is zero, `max` is less than `first`, or `max` is longer than 5 minutes: the store keeps the number of
    /// attempts for ten minutes after the last one.
    #[must_use]
    pub fn new(first: Duration, max: Duration) -> Self {
        assert!(!first.is_zero(), "a back-off of zero is a tight loop");
        assert!(first <= max, "the first back-off is not longer than the longest");
        assert!(max <= BACK_OFF_MAX, "a back-off is 5 minutes at most, so that attempts are counted");
        Self { first, max }
    }

    /// The upper limit of the pause after this attempt, counted from 1. The pause is a random part of it.
    pub fn limit(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.max)
    }

    /// The pause after this attempt.
    pub(super) fn pause(&self, attempt: u32) -> Duration {
        jittered(self.limit(attempt))
    }

    /// The pause after this many failures of the store in a row.
    pub(super) fn store_pause(&self, failures: u32) -> Duration {
        jittered(self.limit(failures).min(STORE_PAUSE_MAX))
    }
}

/// A random part of it: what failed together is not tried together again.
fn jittered(limit: Duration) -> Duration {
    let [a, b, c, d, ..] = *Nonce::random().as_bytes();
    let chance = u32::from_be_bytes([a, b, c, d]);
    limit.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_part_of_the_doubled_limit() {
        let back_off = BackOff::default();
        let limits = [1, 2, 3, 9, 10, 99].map(|attempt| back_off.limit(attempt).as_secs());
        assert_eq!(limits, [1, 2, 4, 256, 300, 300]);
        let pauses: Vec<Duration> = (0..1000).map(|_| back_off.pause(10)).collect();
        assert!(pauses.iter().all(|pause| *pause <= BACK_OFF_MAX));
        assert!(pauses.iter().any(|pause| *pause < BACK_OFF_MAX / 4), "full jitter");
        assert!(pauses.iter().any(|pause| *pause > BACK_OFF_MAX * 3 / 4), "up to the limit");
        assert!((0..1000).all(|_| back_off.store_pause(30) <= STORE_PAUSE_MAX));
    }

    #[test]
    #[should_panic(expected = "tight loop")]
    fn a_back_off_of_zero_is_refused() {
        let _ = BackOff::new(Duration::ZERO, BACK_OFF_MAX);
    }

    #[test]
    #[should_panic(expected = "5 minutes at most")]
    fn a_back_off_that_outlives_the_count_of_attempts_is_refused() {
        let _ = BackOff::new(BACK_OFF_MAX, 2 * BACK_OFF_MAX);
    }
}
