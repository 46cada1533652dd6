//! [`KeyAge`]: how old a key is, by two clocks. Arithmetic only; callers read the clocks.

use std::time::{Duration, Instant, SystemTime};

/// How far in the future a key may have been made, by the clocks of two processes.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// One reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall: SystemTime,
    pub(crate) steady: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { wall: SystemTime::now(), steady: Instant::now() }
    }
}

/// The age of a key. What lies before this process is known by the wall clock only; from then on both clocks count, and the
/// longer time is its age. The wall clock may be set back, the steady one stands still while a machine sleeps, and a key
/// that is taken for younger than it is would be run again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyAge {
    made_at: SystemTime,
    /// Its age when this process learned of it; unknown where its time is far in the future.
    age_then: Option<Duration>,
    since: Instant,
}

impl KeyAge {
    /// The age of a key that was made at this time, and is known to this process from now on.
    pub(crate) fn new(made_at: SystemTime, now: Moment) -> Self {
        let age_then = match now.wall.duration_since(made_at) {
            Ok(age) => Some(age),
            // The clock was set back by an unknown time, which must not prolong the lifetime.
            Err(ahead) => (ahead.duration() <= CLOCK_TOLERANCE).then_some(Duration::ZERO),
        };
        Self { made_at, age_then, since: now.steady }
    }

    pub(crate) fn made_at(&self) -> SystemTime {
        self.made_at
    }

    /// Its age; the longest where it is unknown.
    pub(crate) fn at(&self, now: Moment) -> Duration {
        let Some(age_then) = self.age_then else { return Duration::MAX };
        let steady = age_then.saturating_add(now.steady.saturating_duration_since(self.since));
        now.wall.duration_since(self.made_at).map_or(steady, |wall| wall.max(steady))
    }

    /// The older of two.
    pub(crate) fn older(self, other: Self, now: Moment) -> Self {
        if other.at(now) > self.at(now) { other } else { self }
    }
}

#[cfg(test)]
mod tests;
