//! [`Policy`]: durations, lapsed leases and size limits. Independent of HTTP and stores.

use std::time::{Duration, SystemTime};

use hapax_core::{Format, Key, OnLapse, Recorded};

/// The rules of one operation. Durations longer than [`SPAN_MAX`] are limited to it.
///
/// ```
/// use hapax::Policy;
/// use std::time::Duration;
///
/// let policy = Policy::default().retention(Duration::from_secs(7 * 24 * 3600)).wait(Duration::from_secs(2));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    pub(crate) lease: Duration,
    pub(crate) retention: Duration,
    pub(crate) uncertain_retention: Duration,
    pub(crate) wait: Duration,
    pub(crate) deadline: Option<Duration>,
    pub(crate) run_max: Duration,
    pub(crate) on_lapse: OnLapse,
    pub(crate) attempts_max: u32,
    pub(crate) outcome_bytes_max: usize,
    pub(crate) expired_keys: ExpiredKeys,
}

/// What to do with a key that contains its creation time (a UUID of version 7, a ULID), was made longer ago than
/// records are kept, and has no record: it may be new, or its record may have been removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExpiredKeys {
    /// Run it as new.
    #[default]
    Run,
    /// Refuse it. The clocks of the clients that make keys must be approximately correct.
    Refuse,
}

/// The minimum lease: below it, a scheduling delay looks like a crashed owner.
pub const LEASE_MIN: Duration = Duration::from_millis(30);

/// The maximum duration: a hundred years, which is practically unlimited and still safe to add to a point in time.
pub const SPAN_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            retention: Duration::from_secs(24 * 3600),
            uncertain_retention: Duration::from_secs(30 * 24 * 3600),
            wait: Duration::ZERO,
            deadline: None,
            run_max: Duration::from_secs(3600),
            on_lapse: OnLapse::Uncertain,
            attempts_max: 5,
            outcome_bytes_max: 1 << 20,
            expired_keys: ExpiredKeys::Run,
        }
    }
}

impl Policy {
    /// How long a claim is valid without renewal; renewed at a third of it. At least [`LEASE_MIN`]. Default 30 s.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.clamp(LEASE_MIN, SPAN_MAX);
        self
    }

    /// How long a finished record is replayed, counted from completion. Longer than any caller retries. Default 24 h.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention.min(SPAN_MAX);
        self
    }

    /// How long an unfinished record is kept for operators. Default 30 days.
    #[must_use]
    pub fn uncertain_retention(mut self, uncertain_retention: Duration) -> Self {
        self.uncertain_retention = uncertain_retention.min(SPAN_MAX);
        self
    }

    /// How long a duplicate waits for the first result before it is refused as in progress. Default: not at all.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait.min(SPAN_MAX);
        self
    }

    /// How long a caller waits for a response at most. The run continues and is recorded. Default: no limit.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline.min(SPAN_MAX));
        self
    }

    /// How long a run's lease is renewed. A handler that hangs longer loses its lease, so that operators see an
    /// uncertain record instead of one in progress for ever; if it ends later, its outcome is still recorded. Default 1
    /// h.
    #[must_use]
    pub fn run_max(mut self, run_max: Duration) -> Self {
        self.run_max = run_max.min(SPAN_MAX);
        self
    }

    /// What happens when a lease lapses. Default: uncertain (at most once).
    #[must_use]
    pub fn on_lapse(mut self, on_lapse: OnLapse) -> Self {
        self.on_lapse = on_lapse;
        self
    }

    /// With [`OnLapse::Rerun`]: how many attempts in a row may lapse; then the record becomes uncertain, because the
    /// operation presumably crashes every time. Attempts that released the key do not count. Default 5.
    #[must_use]
    pub fn attempts_max(mut self, attempts_max: u32) -> Self {
        self.attempts_max = attempts_max.max(1);
        self
    }

    /// The maximum size of a recorded outcome. A larger one is returned to its own caller only; retries are refused as
    /// not available, and nothing runs again. Default 1 MiB.
    #[must_use]
    pub fn outcome_bytes_max(mut self, outcome_bytes_max: usize) -> Self {
        self.outcome_bytes_max = outcome_bytes_max;
        self
    }

    /// What to do with a key made longer ago than records are kept. Default: run it as new.
    #[must_use]
    pub fn expired_keys(mut self, expired_keys: ExpiredKeys) -> Self {
        self.expired_keys = expired_keys;
        self
    }

    /// The retention of this outcome. A dead letter is kept until it is removed or redriven: no sweep drops it.
    pub(crate) fn retention_of(&self, recorded: &Recorded) -> Duration {
        if recorded.format == Format::DEAD_LETTER { SPAN_MAX } else { self.retention }
    }

    /// The time from which a record of this key may have been removed, if such keys are refused.
    pub(crate) fn forgets_at(&self, key: &Key) -> Option<SystemTime> {
        match self.expired_keys {
            ExpiredKeys::Run => None,
            ExpiredKeys::Refuse => key.made_at()?.checked_add(self.retention),
        }
    }
}
