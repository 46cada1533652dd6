//! [`StoreClock`]: one time that never goes back, over reopening too.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Clock, SystemClock, Timestamp};

/// How far ahead of the time of a decision the stored mark is put. The mark is then written once a second
/// instead of with every commit, and after a crash the clock is at most this much ahead.
const MARK_AHEAD: Duration = Duration::from_secs(1);

/// The clock of a store, never before what the store has seen.
#[derive(Clone, Debug)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    floor: Timestamp,
}

impl StoreClock {
    /// `chosen`, or the system's clock, but not before `floor`.
    pub(crate) fn new(chosen: Option<Arc<dyn Clock>>, floor: Timestamp) -> Self {
        let clock = chosen.unwrap_or_else(|| Arc::new(SystemClock::starting_after(floor)));
        Self { clock, floor }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().max(self.floor)
    }
}

/// The mark that is to be stored with a decision made at `now`, where it is `seen` so far: the latest time at which a
/// decision can have been written.
///
/// A decision *because* time has passed (a lease lapsed, a record expired) always writes, so a mark that covers
/// every write covers everything that a clock set back could undo.
pub(crate) fn cover(seen: Timestamp, now: Timestamp) -> Timestamp {
    if now <= seen { seen } else { now.after(MARK_AHEAD) }
}
