//! The stored bytes of one caller, by expiry. Times are rounded up to a sixteenth of the span: bytes count a little
//! longer than they are stored, and the number of entries is bounded.

use std::time::Duration;

/// The number of steps per span.
const STEPS: u64 = 16;

/// The minimum step: a finer one would add entries without benefit.
const STEP_MS_MIN: u64 = 1000;

/// Times are relative to the start of the process.
#[derive(Debug, Default)]
pub(super) struct StoredBytesByExpiry {
    /// Expiry times in milliseconds, ascending, with their bytes. At most about [`STEPS`] entries for each different
    /// span.
    expiring: Vec<(u64, u64)>,
}

impl StoredBytesByExpiry {
    pub(super) fn add(&mut self, bytes: u64, keep_for: Duration, now: Duration) {
        let (now, keep_for) = (millis(now), millis(keep_for));
        self.expiring.retain(|(at, _)| *at > now);
        if bytes == 0 || keep_for == 0 {
            return;
        }
        let step = (keep_for / STEPS).max(STEP_MS_MIN);
        let expiry = now.saturating_add(keep_for);
        let rounded = expiry.checked_next_multiple_of(step).unwrap_or(u64::MAX);
        match self.expiring.binary_search_by_key(&rounded, |(at, _)| *at) {
            Ok(place) => {
                let (_, sum) = &mut self.expiring[place];
                *sum = sum.saturating_add(bytes);
            }
            Err(place) => self.expiring.insert(place, (rounded, bytes)),
        }
    }

    /// The time until fewer than `bytes_max` are stored; `None` if that is the case now.
    pub(super) fn room_after(&self, bytes_max: u64, now: Duration) -> Option<Duration> {
        let now = millis(now);
        let kept = || self.expiring.iter().filter(|(at, _)| *at > now);
        let mut sum = kept().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
        let mut room_at = None;
        for (at, bytes) in kept() {
            if sum < bytes_max {
                break;
            }
            sum = sum.saturating_sub(*bytes);
            room_at = Some(*at);
        }
        room_at.map(|at| Duration::from_millis(at - now))
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
