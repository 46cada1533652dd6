//! [`Outage`]: one line when something stops working, and one when it works again.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long nothing must have failed before an outage is over. One that fails now and then is one outage, and no two
/// lines for every request.
const QUIET: Duration = Duration::from_secs(1);

/// Logs an outage once, with its begin and its end, however many requests it fails.
#[derive(Debug)]
pub struct Outage {
    begins: &'static str,
    ends: &'static str,
    is_on: AtomicBool,
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    since: Instant,
    failed_at: Instant,
    failures: u64,
}

impl Outage {
    /// With the words for its begin and its end.
    pub const fn new(begins: &'static str, ends: &'static str) -> Self {
        Self { begins, ends, is_on: AtomicBool::new(false), current: Mutex::new(None) }
    }

    /// Something failed by it.
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
                *current = Some(Current { since: now, failed_at: now, failures: 1 });
                self.is_on.store(true, Ordering::Release);
            }
        }
    }

    /// Something worked: it is over, if nothing has failed for a while.
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
