//! [`StoreTime`]: what time it is for the records of a table.
//!
//! DynamoDB judges nothing by a clock of its own, but every answer says when it was sent. Where this machine's clock
//! disagrees, the service's is believed, so that the retention of all machines is counted on one clock. Whether a lease
//! has lapsed is never judged by it: see [`seen`](crate::seen).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use hapax_core::{Clock, SystemClock, Timestamp};

/// Below this, two clocks agree: an answer's date has whole seconds.
const AGREEING: Duration = Duration::from_secs(2);

/// A clock that goes on evenly, and by how much the service's is ahead of it.
#[derive(Debug)]
pub(crate) struct StoreTime {
    clock: Arc<dyn Clock>,
    /// A clock that a test moves is right by definition.
    follows_service: bool,
    ahead_ms: AtomicI64,
}

impl StoreTime {
    /// This machine's clock, corrected by the service's.
    pub(crate) fn following_service() -> Self {
        Self { clock: Arc::new(SystemClock::new()), follows_service: true, ahead_ms: AtomicI64::new(0) }
    }

    /// This clock and no other.
    pub(crate) fn of(clock: Arc<dyn Clock>) -> Self {
        Self { clock, follows_service: false, ahead_ms: AtomicI64::new(0) }
    }

    /// The moment now.
    pub(crate) fn now(&self) -> Timestamp {
        let ahead = self.ahead_ms.load(Ordering::Relaxed);
        Timestamp::from_millis(self.clock.now().as_millis().saturating_add_signed(ahead))
    }

    /// A moment on a clock that nobody ever sets, to measure spans with.
    pub(crate) fn steady(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes in the date of an answer to what was sent at `sent_at`. True when it changed the time.
    pub(crate) fn hear(&self, date: &str, sent_at: Timestamp) -> bool {
        let Ok(date) = httpdate::parse_http_date(date) else { return false };
        let Ok(date) = date.duration_since(UNIX_EPOCH) else { return false };
        let date = Timestamp::default().after(date);
        let received_at = self.now();
        // The answer was made between the two, however long it was on its way.
        let off = if date > received_at.after(AGREEING) {
            i64::try_from(date.since(received_at).as_millis()).ok()
        } else if date.after(AGREEING) < sent_at {
            i64::try_from(sent_at.since(date).as_millis()).ok().map(|ms| -ms)
        } else {
            None
        };
        match off {
            Some(off) if self.follows_service => {
                self.ahead_ms.fetch_add(off, Ordering::Relaxed);
                tracing::warn!(
                    off_ms = -off,
                    "this machine's clock disagrees with DynamoDB's, which is believed"
                );
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
