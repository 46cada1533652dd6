//! [`ShutdownDeadline`]: how long the end of the process may take. It knows nothing of what ends.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Over at a deadline, or when somebody asks for the end a second time.
#[derive(Debug)]
pub(super) struct ShutdownDeadline {
    deadline: Instant,
    forced: CancellationToken,
}

impl ShutdownDeadline {
    /// From now on, for `limit` at most. Whoever does not want to wait lets `asked_again` end.
    pub(super) fn new(limit: Duration, asked_again: impl Future<Output = ()> + Send + 'static) -> Self {
        let forced = CancellationToken::new();
        let over = forced.clone();
        tokio::spawn(async move {
            asked_again.await;
            over.cancel();
        });
        Self { deadline: Instant::now() + limit, forced }
    }

    /// How long it lasts at most.
    pub(super) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits for `work`; none where it had not ended in time.
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
