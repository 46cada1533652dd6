//! [`MemoryBroker`]: one queue, with everything about it that a consumer may meet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hapax::events::{
    DeliveryError, DeliveryErrorKind, Event, Outgoing, Publish, PublishError, PublishErrorKind, Source,
};
use hapax_core::{Clock, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::delivery::MemoryDelivery;
use crate::TokioClock;

/// The name of the queue, which deliveries name as their destination.
pub(super) const QUEUE: &str = "queue";

/// A call of a consumer to the broker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BrokerCall {
    /// An acknowledgement.
    Ack,
    /// A delivery is given back.
    Nack,
    /// The deadline of a delivery begins again.
    Extend,
    /// An event is published.
    Publish,
}

/// What happens to a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BrokerFault {
    /// The call fails and is not applied.
    Lost,
    /// The call is applied, and its caller gets an error.
    AnswerLost,
}

/// A broker with one queue in memory. Clones share it; every [`source`](Self::source) competes for its events.
///
/// An event is in the queue until it is acknowledged. A delivery that is neither acknowledged nor given back within the
/// deadline is delivered again, and so are all of them after [`disconnect`](Self::disconnect). Events are delivered in the
/// order in which they were sent, those that are delivered again first.
#[derive(Clone, Debug)]
pub struct MemoryBroker {
    pub(super) shared: Arc<Shared>,
}

/// Reads from a [`MemoryBroker`].
#[derive(Debug)]
pub struct MemorySource {
    broker: MemoryBroker,
}

#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    changed: Notify,
    clock: Arc<dyn Clock>,
    pub(super) deadline: Option<Duration>,
    deliveries_max: Option<u32>,
    horizon: Option<Duration>,
}

#[derive(Debug, Default)]
struct Queue {
    sent: u64,
    delivered: u64,
    waiting: BTreeMap<u64, Message>,
    in_flight: BTreeMap<u64, InFlight>,
    acked: Vec<Event>,
    dead: Vec<Event>,
    is_closed: bool,
    calls: BTreeMap<BrokerCall, u64>,
    faults: Vec<(BrokerCall, Option<u64>, BrokerFault)>,
}

#[derive(Clone, Debug)]
struct Message {
    event: Event,
    deliveries: u32,
}

#[derive(Debug)]
struct InFlight {
    message: Message,
    receipt: u64,
    expires_at: Option<Timestamp>,
}

impl Default for MemoryBroker {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBroker {
    /// An empty queue on tokio's time, whose deliveries have no deadline.
    pub fn new() -> Self {
        Self::with(TokioClock::new(), None)
    }

    /// An empty queue whose deliveries have this deadline on tokio's time.
    pub fn with_deadline(deadline: Duration) -> Self {
        Self::with(TokioClock::new(), Some(deadline))
    }

    /// An empty queue whose deliveries have a deadline on this clock. After a manual clock was advanced, call
    /// [`wake`](Self::wake).
    pub fn with(clock: impl Clock, deadline: Option<Duration>) -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                changed: Notify::new(),
                clock: Arc::new(clock),
                deadline,
                deliveries_max: None,
                horizon: None,
            }),
        }
    }

    /// Sets the limit of deliveries: an event that is given back or not acknowledged that often is [`dead`](Self::dead). To
    /// be called before the first clone.
    #[must_use]
    pub fn deliveries_max(mut self, deliveries_max: u32) -> Self {
        Arc::get_mut(&mut self.shared).expect("it is set up before it is shared").deliveries_max =
            Some(deliveries_max);
        self
    }

    /// Sets what its sources report as [`Source::horizon`]. To be called before the first clone.
    #[must_use]
    pub fn horizon(mut self, horizon: Duration) -> Self {
        Arc::get_mut(&mut self.shared).expect("it is set up before it is shared").horizon = Some(horizon);
        self
    }

    /// Puts an event into the queue.
    pub fn send(&self, event: Event) {
        let mut queue = self.shared.queue.lock();
        queue.sent += 1;
        let number = queue.sent;
        queue.waiting.insert(number, Message { event, deliveries: 0 });
        drop(queue);
        self.wake();
    }

    /// A source of what is in the queue.
    pub fn source(&self) -> MemorySource {
        MemorySource { broker: self.clone() }
    }

    /// Closes all sources as soon as the queue is empty and nothing is in flight.
    pub fn close(&self) {
        self.shared.queue.lock().is_closed = true;
        self.wake();
    }

    /// The connection is lost: everything in flight is delivered again, and what its consumers say about it fails.
    pub fn disconnect(&self) {
        let mut queue = self.shared.queue.lock();
        let in_flight = std::mem::take(&mut queue.in_flight);
        for (number, InFlight { message, .. }) in in_flight {
            self.shared.give_back(&mut queue, number, message);
        }
        drop(queue);
        self.wake();
    }

    /// The `nth` call of this kind meets the fault, counted from 1 from now on.
    pub fn fail_nth(&self, call: BrokerCall, nth: u64, fault: BrokerFault) {
        let mut queue = self.shared.queue.lock();
        let already = queue.calls.get(&call).copied().unwrap_or_default();
        queue.faults.push((call, Some(already + nth), fault));
    }

    /// Every call of this kind meets the fault.
    pub fn fail_always(&self, call: BrokerCall, fault: BrokerFault) {
        self.shared.queue.lock().faults.push((call, None, fault));
    }

    /// No further call meets a fault.
    pub fn heal(&self) {
        self.shared.queue.lock().faults.clear();
    }

    /// Lets waiting sources check the clock again.
    pub fn wake(&self) {
        self.shared.changed.notify_waiters();
    }

    /// The number of events that are to be delivered.
    pub fn waiting(&self) -> usize {
        self.shared.queue.lock().waiting.len()
    }

    /// The number of deliveries that are neither acknowledged nor given back.
    pub fn in_flight(&self) -> usize {
        self.shared.queue.lock().in_flight.len()
    }

    /// The number of deliveries so far.
    pub fn delivered(&self) -> u64 {
        self.shared.queue.lock().delivered
    }

    /// The events that were acknowledged, in this order.
    pub fn acked(&self) -> Vec<Event> {
        self.shared.queue.lock().acked.clone()
    }

    /// The events that were delivered too often, in this order.
    pub fn dead(&self) -> Vec<Event> {
        self.shared.queue.lock().dead.clone()
    }

    /// How often this call was made, failed ones included.
    pub fn calls(&self, call: BrokerCall) -> u64 {
        self.shared.queue.lock().calls.get(&call).copied().unwrap_or_default()
    }
}

impl Shared {
    fn expires_at(&self) -> Option<Timestamp> {
        self.deadline.map(|deadline| self.clock.now().after(deadline))
    }

    /// Back into the queue, at its place; or out of it, where it was delivered too often.
    fn give_back(&self, queue: &mut Queue, number: u64, message: Message) {
        if self.deliveries_max.is_some_and(|max| message.deliveries >= max) {
            queue.dead.push(message.event);
        } else {
            queue.waiting.insert(number, message);
        }
    }

    fn fault(&self, queue: &mut Queue, call: BrokerCall) -> Option<BrokerFault> {
        let nth = queue.calls.entry(call).or_default();
        *nth += 1;
        let nth = *nth;
        let hit = queue.faults.iter().find(|(named, at, _)| *named == call && at.is_none_or(|at| at == nth));
        hit.map(|(.., fault)| *fault)
    }

    /// One call about a delivery.
    pub(super) fn call(&self, call: BrokerCall, number: u64, receipt: u64) -> Result<(), DeliveryError> {
        let mut queue = self.queue.lock();
        let fault = self.fault(&mut queue, call);
        if fault == Some(BrokerFault::Lost) {
            return Err(DeliveryError::new(DeliveryErrorKind::Unavailable));
        }
        self.redeliver_expired(&mut queue);
        let is_held = queue.in_flight.get(&number).is_some_and(|in_flight| in_flight.receipt == receipt);
        if !is_held {
            return Err(DeliveryError::new(DeliveryErrorKind::Expired));
        }
        if call == BrokerCall::Extend {
            let expires_at = self.expires_at();
            if let Some(in_flight) = queue.in_flight.get_mut(&number) {
                in_flight.expires_at = expires_at;
            }
        } else if let Some(InFlight { message, .. }) = queue.in_flight.remove(&number) {
            match call {
                BrokerCall::Ack => queue.acked.push(message.event),
                _ => self.give_back(&mut queue, number, message),
            }
        }
        drop(queue);
        self.changed.notify_waiters();
        match fault {
            Some(_) => Err(DeliveryError::new(DeliveryErrorKind::Unknown)),
            None => Ok(()),
        }
    }

    fn redeliver_expired(&self, queue: &mut Queue) {
        let now = self.clock.now();
        let is_expired = |in_flight: &InFlight| in_flight.expires_at.is_some_and(|at| at <= now);
        let expired: Vec<u64> =
            queue.in_flight.iter().filter(|(_, in_flight)| is_expired(in_flight)).map(|(n, _)| *n).collect();
        for number in expired {
            if let Some(InFlight { message, .. }) = queue.in_flight.remove(&number) {
                self.give_back(queue, number, message);
            }
        }
    }
}

/// What a source finds in the queue.
enum Found {
    Delivery(MemoryDelivery),
    Nothing { until: Option<Duration> },
    Closed,
}

impl MemorySource {
    fn find(&self) -> Found {
        let shared = &self.broker.shared;
        let mut queue = shared.queue.lock();
        shared.redeliver_expired(&mut queue);
        let Some((number, mut message)) = queue.waiting.pop_first() else {
            if queue.is_closed && queue.in_flight.is_empty() {
                return Found::Closed;
            }
            let now = shared.clock.now();
            let first = queue.in_flight.values().filter_map(|in_flight| in_flight.expires_at).min();
            return Found::Nothing { until: first.map(|first| first.since(now)) };
        };
        message.deliveries += 1;
        queue.delivered += 1;
        let (event, deliveries, receipt) = (message.event.clone(), message.deliveries, queue.delivered);
        let in_flight = InFlight { message, receipt, expires_at: shared.expires_at() };
        queue.in_flight.insert(number, in_flight);
        Found::Delivery(MemoryDelivery::new(self.broker.clone(), number, receipt, event, deliveries))
    }
}

impl Source for MemorySource {
    type Delivery = MemoryDelivery;

    async fn next(&mut self) -> Option<MemoryDelivery> {
        loop {
            let shared = self.broker.shared.clone();
            let mut changed = Box::pin(shared.changed.notified());
            changed.as_mut().enable();
            match self.find() {
                Found::Delivery(delivery) => return Some(delivery),
                Found::Closed => return None,
                Found::Nothing { until: None } => changed.await,
                Found::Nothing { until: Some(until) } => {
                    let _ = tokio::time::timeout(until, changed).await;
                }
            }
        }
    }

    fn horizon(&self) -> Option<Duration> {
        self.broker.shared.horizon
    }
}

/// Every destination is the queue.
impl Publish for MemoryBroker {
    async fn publish(&self, batch: &[Outgoing]) -> Vec<Result<(), PublishError>> {
        let send = |outgoing: &Outgoing| {
            let fault = self.shared.fault(&mut self.shared.queue.lock(), BrokerCall::Publish);
            if fault == Some(BrokerFault::Lost) {
                return Err(PublishError::new(PublishErrorKind::Unavailable));
            }
            self.send(outgoing.event.clone());
            match fault {
                Some(_) => Err(PublishError::new(PublishErrorKind::Unknown)),
                None => Ok(()),
            }
        };
        batch.iter().map(send).collect()
    }
}
