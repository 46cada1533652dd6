//! [`TokioClock`]: a store's clock on tokio's time, which tests can pause.

use hapax_core::{Clock, ManualClock, Timestamp};
use tokio::time::Instant;

/// Tokio's time. In a runtime with paused time it stands still while a task can run and jumps to the
/// next timer when nothing can, so leases lapse without waiting.
#[derive(Clone, Debug)]
pub struct TokioClock {
    started: Instant,
    at_start: Timestamp,
}

impl TokioClock {
    /// A clock that starts now, at the moment where a [`ManualClock`] starts.
    pub fn new() -> Self {
        Self { started: Instant::now(), at_start: ManualClock::new().now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.at_start.after(self.started.elapsed())
    }
}
