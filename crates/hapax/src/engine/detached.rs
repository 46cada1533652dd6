//! [`Detached`]: a future that its caller polls, and that goes on in a task when the caller drops it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// Is spawned as a task when it is dropped before its end. A future that was never polled has not begun and is only
/// dropped.
pub(super) struct Detached<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// None once it has ended.
    future: Option<Pin<Box<F>>>,
    /// The runtime that it is spawned on; set once it was pending.
    runtime: Option<Handle>,
}

/// The future panicked and is gone.
pub(super) struct Panicked;

impl<F> Detached<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    pub(super) fn new(future: F) -> Self {
        Self { future: Some(Box::pin(future)), runtime: None }
    }
}

impl<F> Future for Detached<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.future else { return Poll::Ready(Err(Panicked)) };
        let ended = match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Ready(output)) => Ok(output),
            Ok(Poll::Pending) => {
                if self.runtime.is_none() {
                    self.runtime = Handle::try_current().ok();
                }
                return Poll::Pending;
            }
            Err(_panic) => Err(Panicked),
        };
        self.future = None;
        Poll::Ready(ended)
    }
}

impl<F> Drop for Detached<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn drop(&mut self) {
        if let (Some(future), Some(runtime)) = (self.future.take(), &self.runtime) {
            runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests;
