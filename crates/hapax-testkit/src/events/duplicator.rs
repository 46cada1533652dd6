//! [`Duplicator`]: delivers twice, in a random order, what another source delivers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hapax::events::{Delivery, DeliveryError, Durable, Event, Source};
use tokio::time::timeout;

use crate::Random;

/// How many copies are shuffled at a time.
const WINDOW: usize = 64;

/// How long the inner source is waited for while there are copies to deliver.
const LULL: Duration = Duration::from_millis(5);

/// Delivers every event of a source twice, shuffled by a seed, so that copies come late, early and at the same time.
///
/// The broker learns the end of both copies together: an event is acknowledged if both were, and given back otherwise. Let the
/// consumer have more than one delivery in hand, or it meets copies only after the first has ended.
#[derive(Debug)]
pub struct Duplicator<S: Source> {
    inner: S,
    random: Random,
    copies: Vec<Copied<S::Delivery>>,
    is_closed: bool,
}

/// One of the two copies of a delivery.
#[derive(Debug)]
pub struct Copied<D> {
    both: Arc<Both<D>>,
    is_second: bool,
}

#[derive(Debug)]
struct Both<D> {
    delivery: D,
    /// How many of the copies were acknowledged. One that is dropped is neither that nor given back.
    acked: AtomicUsize,
}

impl<S: Source> Duplicator<S>
where
    S::Delivery: Sync,
{
    /// Everything of `inner` twice, in an order that `seed` decides.
    pub fn new(inner: S, seed: u64) -> Self {
        Self { inner, random: Random::seeded(seed), copies: Vec::new(), is_closed: false }
    }

    fn take(&mut self, delivery: Option<S::Delivery>) {
        let Some(delivery) = delivery else {
            self.is_closed = true;
            return;
        };
        let both = Arc::new(Both { delivery, acked: AtomicUsize::new(0) });
        self.copies.push(Copied { both: both.clone(), is_second: false });
        self.copies.push(Copied { both, is_second: true });
    }
}

impl<S: Source> Source for Duplicator<S>
where
    S::Delivery: Sync,
{
    type Delivery = Copied<S::Delivery>;

    async fn next(&mut self) -> Option<Self::Delivery> {
        while !self.is_closed && self.copies.len() < WINDOW {
            if self.copies.is_empty() {
                let delivery = self.inner.next().await;
                self.take(delivery);
                continue;
            }
            match timeout(LULL, self.inner.next()).await {
                Ok(delivery) => self.take(delivery),
                Err(_elapsed) => break,
            }
        }
        if self.copies.is_empty() {
            return None;
        }
        let at = self.random.below(self.copies.len() as u64) as usize;
        Some(self.copies.swap_remove(at))
    }

    fn horizon(&self) -> Option<Duration> {
        self.inner.horizon()
    }
}

impl<D: Delivery + Sync> Delivery for Copied<D> {
    fn event(&self) -> &Event {
        self.both.delivery.event()
    }

    fn destination(&self) -> Option<&str> {
        self.both.delivery.destination()
    }

    fn redelivered(&self) -> bool {
        self.is_second || self.both.delivery.redelivered()
    }

    fn deadline(&self) -> Option<Duration> {
        self.both.delivery.deadline()
    }

    fn extend(&self) -> impl Future<Output = Result<(), DeliveryError>> + Send {
        self.both.delivery.extend()
    }

    async fn ack(self, proof: Durable) -> Result<(), DeliveryError> {
        self.both.acked.fetch_add(1, Ordering::AcqRel);
        match Arc::into_inner(self.both) {
            Some(Both { delivery, acked }) if acked.load(Ordering::Acquire) == 2 => delivery.ack(proof).await,
            Some(Both { delivery, .. }) => delivery.nack().await,
            None => Ok(()),
        }
    }

    async fn nack(self) -> Result<(), DeliveryError> {
        match Arc::into_inner(self.both) {
            Some(Both { delivery, .. }) => delivery.nack().await,
            None => Ok(()),
        }
    }
}
