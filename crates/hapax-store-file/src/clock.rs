//! [`StoreClock`]: a clock that never goes back, also over restarts of the process.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Clock, SystemClock, Timestamp};

/// How far the stored time is ahead of a decision's. It is then written once a second instead of with every commit, and
/// after a crash the clock is at most this much ahead.
const AHEAD: Duration = Duration::from_secs(1);

/// The clock of a store, never before the latest time in the store.
#[derive(Clone, Debug)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    floor: Timestamp,
}

impl StoreClock {
    /// `chosen`, or the system's clock, not before `floor`.
    pub(crate) fn new(chosen: Option<Arc<dyn Clock>>, floor: Timestamp) -> Self {
        let clock = chosen.unwrap_or_else(|| Arc::new(SystemClock::starting_after(floor)));
        Self { clock, floor }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().max(self.floor)
    }
}

/// The time to store with a decision made at `now`, where `seen` is stored so far: an upper bound of the times of all
/// decisions.
///
/// A decision *because* time has passed (a lease lapsed, a record expired) always writes, so a bound that covers
/// every write covers everything that a clock set back could undo.
pub(crate) fn cover(seen: Timestamp, now: Timestamp) -> Timestamp {
    if now <= seen { seen } else { now.after(AHEAD) }
}
