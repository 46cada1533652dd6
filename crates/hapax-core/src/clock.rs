//! The clock of a store: [`SystemClock`] for stores of one process, [`ManualClock`] for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::record::Timestamp;

/// A store's source of time.
///
/// It must never go backwards while the store is open: a lapsed lease stays lapsed.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The wall clock at creation plus the monotonic clock.
///
/// A step of the wall clock (an operator, NTP, a restored snapshot) therefore neither ends a lease early nor keeps a
/// lapsed one alive.
#[derive(Clone, Debug)]
pub struct SystemClock {
    wall_start: Timestamp,
    started: Instant,
}

impl SystemClock {
    /// A clock that starts at the current wall-clock time.
    pub fn new() -> Self {
        Self::starting_after(Timestamp::default())
    }

    /// A clock that starts at the current wall-clock time, or at `floor` when the wall clock is behind it.
    ///
    /// A store that persists the last time it read passes it here when it is reopened.
    pub fn starting_after(floor: Timestamp) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { wall_start: Timestamp::default().after(since_epoch).max(floor), started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.wall_start.after(self.started.elapsed())
    }
}

/// A clock that moves only by [`advance`](Self::advance). Clones share one time.
///
/// ```
/// use hapax_core::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(30));
/// assert_eq!(clock.now().since(before), Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    now_ms: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock set to a fixed time in 2026.
    pub fn new() -> Self {
        Self::at(Timestamp::from_millis(1_790_000_000_000))
    }

    /// A clock set to `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { now_ms: Arc::new(AtomicU64::new(now.as_millis())) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Duration) {
        self.now_ms.fetch_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }
}
