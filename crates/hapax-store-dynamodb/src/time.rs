//! [`StoreTime`]: the clock for a table's records.
//!
//! DynamoDB decides nothing by a clock of its own, but every response carries its date. Where this machine's clock
//! disagrees, the service's is used, so that all machines count retention on one clock. One response is not enough for that:
//! a wrong date would make finished records look expired, and their operations run again. Whether a lease has lapsed is
//! never decided by it: see [`sightings`](crate::sightings).

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use hapax_core::{Clock, SystemClock, Timestamp};
use parking_lot::Mutex;

/// Two clocks agree within this: a response's date has whole seconds.
const AGREEING: Duration = Duration::from_secs(2);

/// A monotonic clock, and its offset from the service's clock.
#[derive(Debug)]
pub(crate) struct StoreTime {
    clock: Arc<dyn Clock>,
    /// False for a test's clock, which is right by definition.
    follows_service: bool,
    ahead: Mutex<Offset>,
}

/// The offset of the service's clock from the monotonic one, in milliseconds; positive if the service is ahead.
#[derive(Clone, Copy, Debug, Default)]
struct Offset {
    /// The offset that two responses in a row agreed on.
    agreed_ms: i64,
    /// The offset of the last response, if it was another one.
    latest_ms: Option<i64>,
}

impl StoreTime {
    /// This machine's clock, corrected by the service's.
    pub(crate) fn following_service() -> Self {
        Self { clock: Arc::new(SystemClock::new()), follows_service: true, ahead: Mutex::default() }
    }

    /// This clock only.
    pub(crate) fn of(clock: Arc<dyn Clock>) -> Self {
        Self { clock, follows_service: false, ahead: Mutex::default() }
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        let ahead = self.ahead.lock().agreed_ms;
        ahead_of(self.clock.now(), ahead)
    }

    /// The time to sign a call with. It follows the last response at once: nothing is decided by it, and the service refuses a
    /// signature with a wrong time.
    pub(crate) fn signing_time(&self) -> Timestamp {
        let ahead = *self.ahead.lock();
        ahead_of(self.clock.now(), ahead.latest_ms.unwrap_or(ahead.agreed_ms))
    }

    /// A time on the monotonic clock, to measure spans with.
    pub(crate) fn steady(&self) -> Timestamp {
        self.clock.now()
    }

    /// Processes the date of a response to a request sent at `sent_at` on the monotonic clock. True if it shows another time
    /// than the current offset.
    pub(crate) fn observe_date(&self, date: &str, sent_at: Timestamp) -> bool {
        if !self.follows_service {
            return false;
        }
        let Ok(date) = httpdate::parse_http_date(date) else { return false };
        let Ok(date) = date.duration_since(UNIX_EPOCH) else { return false };
        let date = Timestamp::default().after(date);
        // The response was created between the two, however long it was in flight.
        let (least, most) = (millis_ahead(date, self.clock.now()), millis_ahead(date, sent_at));
        let agreeing = AGREEING.as_millis() as i64;
        let agrees = |ahead: i64| (least - agreeing..=most + agreeing).contains(&ahead);
        let mut ahead = self.ahead.lock();
        if agrees(ahead.agreed_ms) {
            ahead.latest_ms = None;
            return false;
        }
        match ahead.latest_ms.filter(|latest| agrees(*latest)) {
            Some(latest) => {
                let agreed_ms = latest.clamp(least, most);
                *ahead = Offset { agreed_ms, latest_ms: None };
                tracing::warn!(
                    off_ms = -agreed_ms,
                    "this machine's clock disagrees with DynamoDB's; using DynamoDB's"
                );
            }
            None => ahead.latest_ms = Some(ahead.agreed_ms.clamp(least, most)),
        }
        true
    }
}

fn ahead_of(moment: Timestamp, ahead_ms: i64) -> Timestamp {
    Timestamp::from_millis(moment.as_millis().saturating_add_signed(ahead_ms))
}

/// The offset of `date` from `moment`. Neither is near the limits of the type: a date in HTTP has four digits for the year,
/// and the other is the system's time.
fn millis_ahead(date: Timestamp, moment: Timestamp) -> i64 {
    date.as_millis() as i64 - moment.as_millis() as i64
}

#[cfg(test)]
mod tests;
