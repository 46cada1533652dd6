//! [`Shared`]: what the clones of a consumer count together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::events::order::Lanes;

/// How often it is checked whether anything is in hand while the store fails.
const RECHECK: Duration = Duration::from_secs(1);

/// Bounds, lanes and health of a consumer.
#[derive(Debug)]
pub(in crate::events) struct Shared {
    running: Arc<Semaphore>,
    concurrency: usize,
    hand: Arc<Semaphore>,
    in_hand: AtomicUsize,
    held: AtomicUsize,
    store_fails: watch::Sender<bool>,
    pub(in crate::events) lanes: Arc<Lanes>,
    pub(in crate::events) stop: CancellationToken,
}

impl Shared {
    pub(in crate::events) fn new(concurrency: usize, in_hand_max: usize) -> Self {
        let permits = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            running: permits(concurrency),
            concurrency,
            hand: permits(in_hand_max),
            in_hand: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            store_fails: watch::Sender::new(false),
            lanes: Arc::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Room for one more handler to run.
    pub(in crate::events) async fn room_to_run(&self) -> OwnedSemaphorePermit {
        self.running.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Room for one more delivery in hand.
    pub(in crate::events) async fn room_in_hand(&self) -> OwnedSemaphorePermit {
        self.hand.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    pub(in crate::events) fn concurrency(&self) -> usize {
        self.concurrency
    }

    pub(in crate::events) fn in_hand(&self) -> usize {
        self.in_hand.load(Ordering::Relaxed)
    }

    pub(in crate::events) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(in crate::events) fn running(&self) -> usize {
        self.concurrency.saturating_sub(self.running.available_permits())
    }

    /// Counts a delivery as in hand until the guard is dropped.
    pub(in crate::events) fn take_in_hand(&self) -> Counted<'_> {
        Counted::one_more(&self.in_hand)
    }

    /// Counts a delivery as held until the guard is dropped.
    pub(in crate::events) fn hold(&self) -> Counted<'_> {
        Counted::one_more(&self.held)
    }

    pub(in crate::events) fn is_store_failing(&self) -> bool {
        *self.store_fails.borrow()
    }

    /// Whether the store could be asked the last time.
    pub(in crate::events) fn set_store_failing(&self, is_failing: bool) {
        self.store_fails.send_if_modified(|was| std::mem::replace(was, is_failing) != is_failing);
    }

    /// Waits until it is worth while to take another delivery: while those in hand wait for the store, it is not (V-09).
    pub(in crate::events) async fn store_may_answer(&self) {
        while self.is_store_failing() && self.in_hand() > 0 {
            // What is in hand may also be given back meanwhile; then the next delivery finds out about the store.
            let _ = tokio::time::timeout(RECHECK, self.store_answers()).await;
        }
    }

    /// Waits until the store answers a claim, of whichever delivery.
    pub(in crate::events) async fn store_answers(&self) {
        // The sender lives as long as `self` does, so waiting cannot fail.
        let _ = self.store_fails.subscribe().wait_for(|fails| !fails).await;
    }
}

/// Counts one until dropped.
pub(in crate::events) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn one_more(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
