//! One store call at a time: bounded, a panic caught, and asked again with the same nonce when its answer is lost.
//!
//! A store has three answers: applied, not applied, unknown. A call without an answer (a timeout, a panic of the store)
//! counts as *unknown*, which is resolved by sending the same call again, never by guessing.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use hapax_core::{Fingerprint, RecordId, Recorded, Store, StoreError, StoreErrorKind};
use tokio::task::unconstrained;
use tokio::time::sleep;

use crate::observe;

/// The first pause before asking again; it doubles each time.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
/// The longest pause: a store that comes back is noticed within it.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The store, and how long one call to it may take.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timeout: Duration,
}

impl Calls {
    /// How long a call about a lease of this length may take: a lease is not to lapse because of one slow call.
    pub(crate) fn within(&self, lease: Duration) -> Duration {
        self.timeout.min(lease / 3)
    }

    /// One call, which may take `limit`.
    pub(crate) async fn once<T>(
        &self,
        op: &'static str,
        limit: Duration,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut call = pin!(AssertUnwindSafe(call).catch_unwind());
        let mut timer = pin!(None);
        let ended = poll_fn(|cx| {
            if let Poll::Ready(ended) = call.as_mut().poll(cx) {
                return Poll::Ready(Some(ended));
            }
            // Only now: a store in memory answers at once, and then no timer is needed.
            if timer.is_none() {
                // Polled also when the call has used up the task's cooperative budget.
                timer.set(Some(unconstrained(sleep(limit))));
            }
            let timer = timer.as_mut().as_pin_mut().expect("it was set above");
            timer.poll(cx).map(|()| None)
        });
        let error = match ended.await {
            Some(Ok(Ok(answer))) => return Ok(answer),
            Some(Ok(Err(error))) => error,
            Some(Err(_panic)) => {
                StoreError::new(StoreErrorKind::Unknown, op).with_source("the store panicked")
            }
            None => {
                StoreError::new(StoreErrorKind::Unknown, op).with_source("the store did not answer in time")
            }
        };
        observe::store_error(&error);
        Err(error)
    }

    /// What the store returns at once of a finished operation. A store that panics returns nothing.
    pub(crate) fn recall(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Recorded> {
        catch_unwind(AssertUnwindSafe(|| self.store.recall(id, fingerprint))).ok().flatten()
    }

    /// The same call until it is answered, fails for good, or has been tried `tries_max` times. It is made inside an
    /// async block, because a store may panic before it returns its future.
    pub(crate) async fn insist<T, F>(
        &self,
        op: &'static str,
        limit: Duration,
        tries_max: u32,
        mut call: impl FnMut() -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut pauses = Pauses::new();
        for _ in 1..tries_max {
            match self.once(op, limit, async { call().await }).await {
                Err(error) if error.is_transient() => pauses.next().await,
                answer => return answer,
            }
        }
        self.once(op, limit, async { call().await }).await
    }
}

/// Growing pauses between two tries.
pub(crate) struct Pauses(Duration);

impl Pauses {
    pub(crate) fn new() -> Self {
        Self(PAUSE_FIRST)
    }

    pub(crate) async fn next(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests;
