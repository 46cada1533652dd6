//! [`RetryPolicy`]: how many retries, and the pauses between them. The arithmetic of pauses; no clock, no waiting.

use std::time::Duration;

/// Two retries are what the SDKs of large APIs settle on: more of them mostly add load to a service that is down.
const RETRIES_MAX: u32 = 2;
const BASE: Duration = Duration::from_millis(500);
const CAP: Duration = Duration::from_secs(8);
/// A base or cap of zero would be a busy loop.
const BASE_MIN: Duration = Duration::from_millis(1);
/// An operation in progress is asked for a hundred times a second at most, whatever the base.
const POLL_MIN: Duration = Duration::from_millis(10);

/// How often a call is retried, and how long it pauses before each retry.
///
/// The pause before retry *n* is a random time between zero and `base` × 2ⁿ⁻¹, at most `cap` (exponential back-off with
/// full jitter). `Retry-After` is waited out in addition.
///
/// ```
/// use std::time::Duration;
/// use hapax_client::RetryPolicy;
///
/// let policy = RetryPolicy::default().retries_max(4).base(Duration::from_millis(100));
/// assert_ne!(policy, RetryPolicy::never());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryPolicy {
    pub(crate) retries_max: u32,
    base: Duration,
    cap: Duration,
}

impl Default for RetryPolicy {
    /// Two retries; pauses of up to 0.5 and 1 second.
    fn default() -> Self {
        Self { retries_max: RETRIES_MAX, base: BASE, cap: CAP }
    }
}

impl RetryPolicy {
    /// No retries. An operation that is in progress is still waited for.
    #[must_use]
    pub fn never() -> Self {
        Self::default().retries_max(0)
    }

    /// The maximum number of retries after the first attempt.
    #[must_use]
    pub fn retries_max(self, retries_max: u32) -> Self {
        Self { retries_max, ..self }
    }

    /// The maximum of the first pause, at least a millisecond; each further one is twice as long.
    #[must_use]
    pub fn base(self, base: Duration) -> Self {
        Self { base: base.max(BASE_MIN), ..self }
    }

    /// The maximum of every pause, at least a millisecond.
    #[must_use]
    pub fn cap(self, cap: Duration) -> Self {
        Self { cap: cap.max(BASE_MIN), ..self }
    }

    /// The maximum of the pause after `earlier` others.
    fn pause_max(&self, earlier: u32) -> Duration {
        let factor = 1_u32.checked_shl(earlier).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap)
    }

    /// The pause after `earlier` others: `random` is uniform over its type.
    pub(crate) fn pause(&self, earlier: u32, random: u64) -> Duration {
        let nanos = self.pause_max(earlier).as_nanos().min(u128::from(u64::MAX));
        // The product of two 64-bit numbers fits, and its upper half is less than `nanos`.
        let scaled = (nanos * u128::from(random)) >> u64::BITS;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

/// The pause before an operation in progress is asked for again.
pub(crate) fn poll_pause(pause: Duration) -> Duration {
    pause.max(POLL_MIN)
}

/// A uniformly distributed number. Without a source of randomness pauses are the longest.
pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
