//! [`SimClock`]: the store's clock: Tokio's paused time and the steps of a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use hapax_core::{Clock, Timestamp};
use tokio::time::Instant;

/// A clock that moves with Tokio's paused time and can be stepped ahead of it. Clones share one time.
#[derive(Clone, Debug)]
pub struct SimClock {
    started: Instant,
    stepped_ms: Arc<AtomicU64>,
}

impl SimClock {
    /// A clock that stands at zero. To be made inside the simulated runtime.
    pub fn new() -> Self {
        Self { started: Instant::now(), stepped_ms: Arc::default() }
    }

    /// Milliseconds since the simulation began, by this clock.
    pub fn ms(&self) -> u64 {
        millis(self.started.elapsed()) + self.stepped_ms.load(Ordering::Relaxed)
    }

    /// Only the store's clock jumps forward; the processes' own clocks do not.
    pub fn step(&self, span: Duration) {
        self.stepped_ms.fetch_add(millis(span), Ordering::Relaxed);
    }

    /// All clocks jump forward by `span`, and nothing runs meanwhile.
    pub fn freeze(&self, span: Duration) {
        // The first poll moves the clock; the yield after it must not happen here.
        let _ = tokio::time::advance(span).now_or_never();
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.ms())
    }
}

/// Whole milliseconds.
pub fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
