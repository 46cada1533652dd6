//! [`RetryBudget`]: bounds retries to a share of all calls, so that a client does not multiply the load of a service that
//! fails. A token bucket without a clock: calls fill it, retries empty it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Retries that a client may make at once, before any call has paid for one.
const RETRIES_MAX: u32 = 20;
/// One retry for five calls, once the bucket is empty.
const PER_HUNDRED_CALLS: u32 = 20;
/// One retry, in the unit of the bucket.
const RETRY: u64 = 100;

/// The retries that a client, or several clients with a clone of it, may make.
///
/// The budget starts with `retries_max` retries. Each retry takes one, and each call gives a part of one back, up to that
/// maximum. Waiting for an operation that is in progress takes none.
///
/// ```
/// // Ten retries at once, and then one for ten calls.
/// let budget = hapax_client::RetryBudget::new(10, 10);
/// ```
#[derive(Clone, Debug)]
pub struct RetryBudget {
    bucket: Arc<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    level: AtomicU64,
    level_max: u64,
    per_call: u64,
}

impl Default for RetryBudget {
    /// 20 retries at once, and 20 for every hundred calls.
    fn default() -> Self {
        Self::new(RETRIES_MAX, PER_HUNDRED_CALLS)
    }
}

impl RetryBudget {
    /// `retries_max` retries at once, and then `retries_per_hundred_calls`.
    pub fn new(retries_max: u32, retries_per_hundred_calls: u32) -> Self {
        let level_max = u64::from(retries_max) * RETRY;
        let per_call = u64::from(retries_per_hundred_calls);
        Self { bucket: Arc::new(Bucket { level: AtomicU64::new(level_max), level_max, per_call }) }
    }

    /// One call was made.
    pub(crate) fn deposit(&self) {
        let Bucket { level, level_max, per_call } = &*self.bucket;
        let add = |old: u64| Some(old.saturating_add(*per_call).min(*level_max));
        // The closure always returns a value.
        let _ = level.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes one retry, if there is one.
    pub(crate) fn withdraw(&self) -> bool {
        let take = |old: u64| old.checked_sub(RETRY);
        self.bucket.level.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests;
