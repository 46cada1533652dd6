//! [`StoreTime`]: what time it is for the records of a table.
//!
//! DynamoDB judges nothing by a clock of its own, but every answer says when it was sent. Where this machine's clock
//! disagrees, the service's is believed, so that the retention of all machines is counted on one clock. One answer is
//! not enough for that: a wrong date would make finished records look expired, and their operations run again. Whether
//! a lease has lapsed is never judged by it: see [`seen`](crate::seen).

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use hapax_core::{Clock, SystemClock, Timestamp};
use parking_lot::Mutex;

/// Below this, two clocks agree: an answer's date has whole seconds.
const AGREEING: Duration = Duration::from_secs(2);

/// A clock that goes on evenly, and by how much the service's is ahead of it.
#[derive(Debug)]
pub(crate) struct StoreTime {
    clock: Arc<dyn Clock>,
    /// A clock that a test moves is right by definition.
    follows_service: bool,
    ahead: Mutex<Ahead>,
}

/// By how many milliseconds the service's clock is ahead of the one that nobody sets.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    /// What two answers in a row agreed on.
    believed_ms: i64,
    /// What the last answer said, if that was something else.
    told_ms: Option<i64>,
}

impl StoreTime {
    /// This machine's clock, corrected by the service's.
    pub(crate) fn following_service() -> Self {
        Self { clock: Arc::new(SystemClock::new()), follows_service: true, ahead: Mutex::default() }
    }

    /// This clock and no other.
    pub(crate) fn of(clock: Arc<dyn Clock>) -> Self {
        Self { clock, follows_service: false, ahead: Mutex::default() }
    }

    /// The moment now.
    pub(crate) fn now(&self) -> Timestamp {
        let ahead = self.ahead.lock().believed_ms;
        ahead_of(self.clock.now(), ahead)
    }

    /// The moment to sign a call with. Here the last answer is believed at once: nothing is judged by it, and the
    /// service refuses a signature of another time.
    pub(crate) fn to_sign_with(&self) -> Timestamp {
        let ahead = *self.ahead.lock();
        ahead_of(self.clock.now(), ahead.told_ms.unwrap_or(ahead.believed_ms))
    }

    /// A moment on a clock that nobody ever sets, to measure spans with.
    pub(crate) fn steady(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes in the date of an answer to what was sent at `sent_at` on the steady clock. True when it says another time
    /// than the one believed until now.
    pub(crate) fn hear(&self, date: &str, sent_at: Timestamp) -> bool {
        if !self.follows_service {
            return false;
        }
        let Ok(date) = httpdate::parse_http_date(date) else { return false };
        let Ok(date) = date.duration_since(UNIX_EPOCH) else { return false };
        let date = Timestamp::default().after(date);
        // The answer was made between the two, however long it was on its way.
        let (least, most) = (millis_ahead(date, self.clock.now()), millis_ahead(date, sent_at));
        let agreeing = AGREEING.as_millis() as i64;
        let agrees = |ahead: i64| (least - agreeing..=most + agreeing).contains(&ahead);
        let mut ahead = self.ahead.lock();
        if agrees(ahead.believed_ms) {
            ahead.told_ms = None;
            return false;
        }
        match ahead.told_ms.filter(|told| agrees(*told)) {
            Some(told) => {
                let believed_ms = told.clamp(least, most);
                *ahead = Ahead { believed_ms, told_ms: None };
                tracing::warn!(
                    off_ms = -believed_ms,
                    "this machine's clock disagrees with DynamoDB's, which is believed"
                );
            }
            None => ahead.told_ms = Some(ahead.believed_ms.clamp(least, most)),
        }
        true
    }
}

fn ahead_of(moment: Timestamp, ahead_ms: i64) -> Timestamp {
    Timestamp::from_millis(moment.as_millis().saturating_add_signed(ahead_ms))
}

/// By how much `date` is ahead of `moment`. Neither is near the ends of the type: a date in HTTP has four digits for the
/// year, and the other is the system's time.
fn millis_ahead(date: Timestamp, moment: Timestamp) -> i64 {
    date.as_millis() as i64 - moment.as_millis() as i64
}

#[cfg(test)]
mod tests;
