//! Who says what time it is: [`SystemClock`] for stores of one process, [`ManualClock`] for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::record::Timestamp;

/// A store's notion of now.
///
/// It must never go backwards while the store is open: a lease that was lapsed stays lapsed.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// The current moment.
    fn now(&self) -> Timestamp;
}

/// The wall clock read once, and the monotonic clock from then on.
///
/// A step of the wall clock (a person, NTP, a restored snapshot) therefore neither ends a lease early nor
/// keeps a dead one alive.
#[derive(Clone, Debug)]
pub struct SystemClock {
    wall_start: Timestamp,
    started: Instant,
}

impl SystemClock {
    /// A clock that starts at the wall clock's now.
    pub fn new() -> Self {
        Self::starting_after(Timestamp::default())
    }

    /// A clock that starts at the wall clock's now, or at `floor` when the wall clock is behind it.
    ///
    /// A store that remembers the last time it saw passes it here when it is opened again.
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

/// A clock that moves only when told to. Clones share one time.
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
    /// A clock that stands at a fixed moment in 2026.
    pub fn new() -> Self {
        Self::at(Timestamp::from_millis(1_790_000_000_000))
    }

    /// A clock that stands at `now`.
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
