//! [`MemoryDelivery`]: one event as the broker in memory hands it over.

use std::time::Duration;

use hapax::events::{Delivery, DeliveryError, Durable, Event};

use super::broker::{BrokerCall, MemoryBroker, QUEUE};

/// A delivery of a [`MemoryBroker`]. Dropped, it stays in flight until its deadline.
#[derive(Debug)]
pub struct MemoryDelivery {
    broker: MemoryBroker,
    number: u64,
    receipt: u64,
    event: Event,
    deliveries: u32,
}

impl MemoryDelivery {
    pub(super) fn new(
        broker: MemoryBroker,
        number: u64,
        receipt: u64,
        event: Event,
        deliveries: u32,
    ) -> Self {
        Self { broker, number, receipt, event, deliveries }
    }

    fn call(&self, call: BrokerCall) -> Result<(), DeliveryError> {
        self.broker.shared.call(call, self.number, self.receipt)
    }
}

impl Delivery for MemoryDelivery {
    fn event(&self) -> &Event {
        &self.event
    }

    fn destination(&self) -> Option<&str> {
        Some(QUEUE)
    }

    fn redelivered(&self) -> bool {
        self.deliveries > 1
    }

    fn deadline(&self) -> Option<Duration> {
        self.broker.shared.deadline
    }

    async fn extend(&self) -> Result<(), DeliveryError> {
        self.call(BrokerCall::Extend)
    }

    async fn ack(self, _proof: Durable) -> Result<(), DeliveryError> {
        self.call(BrokerCall::Ack)
    }

    async fn nack(self) -> Result<(), DeliveryError> {
        self.call(BrokerCall::Nack)
    }
}
