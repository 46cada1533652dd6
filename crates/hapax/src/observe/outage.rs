//! [`Outage`]: one log line when failures begin, and one when they end.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time without failures after which an outage is over. Intermittent failures are one outage, without two lines for
/// every request.
const QUIET: Duration = Duration::from_secs(1);

/// Logs the begin and the end of an outage, independent of the number of failed requests.
#[derive(Debug)]
pub struct Outage {
    begins: &'static str,
    ends: &'static str,
    is_on: AtomicBool,
    current: Mutex<Option<OutageState>>,
}

#[derive(Debug)]
struct OutageState {
    since: Instant,
    failed_at: Instant,
    failures: u64,
}

impl Outage {
    /// With the messages for its begin and its end.
    pub const fn new(begins: &'static str, ends: &'static str) -> Self {
        Self { begins, ends, is_on: AtomicBool::new(false), current: Mutex::new(None) }
    }

    /// Reports a failure.
    pub fn failed(&self, error: &dyn fmt::Display) {
        let now = Instant::now();
        let mut current = self.current.lock();
        match &mut *current {
            Some(current) => {
                current.failed_at = now;
                current.failures += 1;
            }
            None => {
                tracing::warn!(%error, "{}", self.begins);
                *current = Some(OutageState { since: now, failed_at: now, failures: 1 });
                self.is_on.store(true, Ordering::Release);
            }
        }
    }

    /// Reports a success: ends the outage if there was no failure for a while.
    pub fn succeeded(&self) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let mut current = self.current.lock();
        if let Some(over) = current.take_if(|current| current.failed_at.elapsed() >= QUIET) {
            self.is_on.store(false, Ordering::Release);
            let seconds = over.since.elapsed().as_secs();
            tracing::warn!(seconds, failures = over.failures, "{}", self.ends);
        }
    }
}

#[cfg(test)]
mod tests;
