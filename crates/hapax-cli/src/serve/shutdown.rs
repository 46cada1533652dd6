//! [`ShutdownDeadline`]: the time limit of a graceful shutdown.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Expires at a time, or with a second request to shut down.
#[derive(Debug)]
pub(super) struct ShutdownDeadline {
    deadline: Instant,
    forced: CancellationToken,
}

impl ShutdownDeadline {
    /// Expires after `limit`, or as soon as `second_request` resolves.
    pub(super) fn new(limit: Duration, second_request: impl Future<Output = ()> + Send + 'static) -> Self {
        let forced = CancellationToken::new();
        let expire = forced.clone();
        tokio::spawn(async move {
            second_request.await;
            expire.cancel();
        });
        Self { deadline: Instant::now() + limit, forced }
    }

    /// The time until the deadline.
    pub(super) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// The result of `work`, or none if the deadline expires first.
    pub(super) async fn limit<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.forced.cancelled() => None,
            () = tokio::time::sleep_until(self.deadline) => None,
        }
    }
}

#[cfg(test)]
mod tests;
