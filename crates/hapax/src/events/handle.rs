//! [`Consumer::handle`]: one delivery, from the broker to the end of its event. Here is the loop; what happens in each
//! round is decided by [`decide`].

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use hapax_core::RecordId;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::attempt::{Attempted, Keyed, Worked};
use super::consumer::Consumer;
use super::dead_letter::DeadReason;
use super::decide::{Decision, Finding, Then, Wait, Write, decide};
use super::durable::Durable;
use super::event::Event;
use super::order::{Turn, TurnEnd};
use super::router::Router;
use super::source::{Delivery, DeliveryError};
use crate::engine::wait::WaitSlot;
use crate::observe::{self, Present};

/// How an event ended that was handled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Handled {
    /// Its handler ran and succeeded. The delivery is acknowledged.
    Ran,
    /// It was processed before. The delivery is acknowledged.
    Duplicate,
    /// It is a dead letter, now or since an earlier delivery. The delivery is acknowledged.
    Dead,
    /// It has no outcome: its broker delivers it again.
    GivenBack,
}

impl Handled {
    /// The name used in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Duplicate => "duplicate",
            Self::Dead => "dead",
            Self::GivenBack => "given_back",
        }
    }
}

/// How long an event may stay in hand.
#[derive(Clone, Debug)]
pub(super) struct Stay {
    /// Ends every hold at once.
    pub(super) stop: CancellationToken,
    /// The end of the invocation, where there is one.
    pub(super) until: Option<Instant>,
}

/// What the broker is to be told.
pub(super) enum Told {
    Acked(Durable, Handled),
    GivenBack,
}

/// What one round came to, with the proof where there is an outcome.
enum Step {
    Ack(Durable, Handled),
    Hold(Wait),
    GiveBack(Option<Wait>),
}

/// The holds of one event so far.
#[derive(Default)]
struct Holds {
    store_failures: u32,
    /// The wait for another attempt.
    slot: Option<WaitSlot>,
}

impl Consumer {
    /// Processes the event of a delivery until it is done with, and tells its broker: it is acknowledged once its outcome is
    /// recorded, and given back when it has none.
    ///
    /// A failed attempt is repeated after a back-off, with the delivery in hand; while it is, the broker's deadline is
    /// extended. So this may take minutes: call it in a task of its own, or use [`run`](Self::run). Concurrent calls share
    /// the [`concurrency`](Self::concurrency), and those whose events have the same order run in the order of the calls.
    ///
    /// *Dropped*: the delivery is dropped with it. A handler that has begun goes on, and its outcome is recorded for the next
    /// delivery.
    pub async fn handle<D, S>(&self, delivery: D, router: &Router<S>) -> Handled
    where
        D: Delivery,
        S: Clone + Send + Sync + 'static,
    {
        let turn = self.turn(delivery.event());
        let stay = Stay { stop: self.shared.stop.clone(), until: None };
        self.handle_in_turn(delivery, router, turn, &stay).await
    }

    /// The place of an event among those of the same order.
    pub(super) fn turn(&self, event: &Event) -> Option<Turn> {
        event.order.as_deref().filter(|order| !order.is_empty()).map(|order| self.shared.lanes.enter(order))
    }

    pub(super) async fn handle_in_turn<D, S>(
        &self,
        delivery: D,
        router: &Router<S>,
        turn: Option<Turn>,
        stay: &Stay,
    ) -> Handled
    where
        D: Delivery,
        S: Clone + Send + Sync + 'static,
    {
        let _in_hand =
            (self.shared.take_in_hand(), Present::in_gauge_of(observe::EVENTS_IN_HAND, self.name()));
        let event = delivery.event().clone();
        let destination = delivery.destination().map(str::to_owned);
        let mut work = pin!(self.conclude_event(&event, destination.as_deref(), router, turn, stay));
        let told = loop {
            let Some(third) = delivery.deadline().map(|deadline| deadline / 3) else {
                break work.as_mut().await;
            };
            if let Ok(told) = timeout(third, work.as_mut()).await {
                break told;
            }
            let extend = pin!(timeout(third, delivery.extend()));
            match select(work.as_mut(), extend).await {
                Either::Left((told, _)) => break told,
                Either::Right((Ok(Ok(())), _)) => {}
                Either::Right((Ok(Err(error)), _)) => observe::delivery_failed(self.name(), "extend", &error),
                Either::Right((Err(_late), _)) => {
                    tracing::warn!(consumer = self.name(), "the broker does not answer an extension in time");
                }
            }
        };
        self.tell(delivery, told).await
    }

    /// Tells the broker. A failure changes nothing: the event is delivered again and found to be recorded (V-12).
    async fn tell<D: Delivery>(&self, delivery: D, told: Told) -> Handled {
        let (handled, call, answer): (_, _, Result<(), DeliveryError>) = match told {
            Told::Acked(proof, handled) => (handled, "ack", delivery.ack(proof).await),
            Told::GivenBack => (Handled::GivenBack, "nack", delivery.nack().await),
        };
        if let Err(error) = answer {
            observe::delivery_failed(self.name(), call, &error);
        }
        handled
    }

    /// Processes an event, in its turn, until it has an outcome or may stay no longer.
    pub(super) async fn conclude_event<S>(
        &self,
        event: &Event,
        destination: Option<&str>,
        router: &Router<S>,
        turn: Option<Turn>,
        stay: &Stay,
    ) -> Told
    where
        S: Clone + Send + Sync + 'static,
    {
        let span = observe::event(self.name(), &event.kind);
        let mut turn = turn;
        let told = async {
            let comes = match &mut turn {
                None => TurnEnd::Concluded,
                Some(turn) => stay.unless_over(turn.come()).await.unwrap_or(TurnEnd::GivenBack),
            };
            match comes {
                TurnEnd::GivenBack => Told::GivenBack,
                TurnEnd::Concluded => {
                    let repeated = self.repeat(event, destination, router, stay);
                    stay.unless_late(repeated).await.unwrap_or(Told::GivenBack)
                }
            }
        };
        let told = told.instrument(span).await;
        let (end, handled) = match &told {
            Told::Acked(_, handled) => (TurnEnd::Concluded, *handled),
            Told::GivenBack => (TurnEnd::GivenBack, Handled::GivenBack),
        };
        if let Some(turn) = turn {
            turn.end(end);
        }
        observe::event_handled(self.name(), handled.name());
        told
    }

    /// The loop: a round, then a hold, until there is something to tell the broker.
    async fn repeat<S>(
        &self,
        event: &Event,
        destination: Option<&str>,
        router: &Router<S>,
        stay: &Stay,
    ) -> Told
    where
        S: Clone + Send + Sync + 'static,
    {
        let keyed = self.keyed(event, destination);
        let mut holds = Holds::default();
        loop {
            let Some(room) = stay.unless_over(self.shared.room_to_run()).await else {
                return Told::GivenBack;
            };
            let step = self.round(&keyed, router, &mut holds).await;
            drop(room);
            let (wait, is_given_back) = match step {
                Step::Ack(proof, handled) => return Told::Acked(proof, handled),
                Step::GiveBack(None) => return Told::GivenBack,
                Step::GiveBack(Some(wait)) => (wait, true),
                // What is in hand is in memory: a large event waits for its next attempts in its broker.
                Step::Hold(wait) => (wait, event.size() > self.event_bytes_max),
            };
            let mut is_over = self.hold(wait, &keyed, &mut holds, stay).await;
            if is_given_back && !is_over && matches!(wait, Wait::Change { .. }) {
                is_over = self.hold(wait, &keyed, &mut holds, stay).await;
            }
            if is_given_back || is_over {
                return Told::GivenBack;
            }
        }
    }

    /// One attempt, and what follows from it.
    async fn round<S>(&self, keyed: &Keyed, router: &Router<S>, holds: &mut Holds) -> Step
    where
        S: Clone + Send + Sync + 'static,
    {
        if keyed.is_unnamed {
            let is_readable = keyed.event.why_unreadable().is_none();
            let reason = if is_readable { DeadReason::Unnamed } else { DeadReason::Undecodable };
            return self.step_without_outcome(keyed, Finding::Unusable { reason }, holds).await;
        }
        let (event, router) = (keyed.event.clone(), router.clone());
        let work = move |context| async move {
            let outcome = router.call(context, event).await;
            Worked { value: (), outcome }
        };
        let attempted = self.attempt(keyed, work).await;
        if attempted.is_concluded() {
            self.forget_redriven(keyed).await;
        }
        let finding = match attempted {
            Attempted::Ran { decision, is_recorded: true, .. }
            | Attempted::Overdue { decision, is_recorded: true } => {
                self.store_answered(holds);
                return self.proven(decision, keyed.id);
            }
            Attempted::Ran { .. } | Attempted::Overdue { .. } => Finding::Unrecorded,
            Attempted::Replayed { finding, .. } => {
                self.store_answered(holds);
                return self.proven(decide(finding, &self.rules), keyed.id);
            }
            Attempted::Refused { finding, .. } => finding,
        };
        self.step_without_outcome(keyed, finding, holds).await
    }

    /// What follows when the record of the event has no outcome.
    async fn step_without_outcome(&self, keyed: &Keyed, finding: Finding, holds: &mut Holds) -> Step {
        let decision = decide(finding, &self.rules);
        let finding = match decision.write {
            Write::Apart(reason) => match self.set_apart(keyed, reason).await {
                Ok(record) => {
                    self.store_answered(holds);
                    if keyed.redrive_record() != Some(record) {
                        self.forget_redriven(keyed).await;
                    }
                    return self.proven(decision, record);
                }
                Err(finding) => finding,
            },
            _ => finding,
        };
        match finding {
            Finding::StoreFailed => {
                holds.store_failures = holds.store_failures.saturating_add(1);
                self.shared.set_store_failing(true);
            }
            Finding::Draining => {}
            _ => self.store_answered(holds),
        }
        match decide(finding, &self.rules).then {
            Then::Hold(wait) => Step::Hold(wait),
            Then::GiveBack(wait) => Step::GiveBack(wait),
            // Nothing is acknowledged that is not recorded, whatever the table may say.
            Then::Ack(_) | Then::ClaimAgain => Step::Hold(Wait::BackOff { attempt: 1 }),
        }
    }

    /// The step after a write that is recorded, in this record: the only place that makes a proof.
    fn proven(&self, decision: Decision, record: RecordId) -> Step {
        match decision.write {
            Write::DeadLetter(reason) | Write::Settled(reason) | Write::Apart(reason) => {
                observe::dead_letter(self.name(), reason.name());
            }
            Write::Released => observe::event_retried(self.name()),
            _ => {}
        }
        match decision.then {
            Then::Ack(handled) => Step::Ack(Durable::recorded(record), handled),
            Then::Hold(wait) => Step::Hold(wait),
            Then::GiveBack(wait) => Step::GiveBack(wait),
            Then::ClaimAgain => Step::Hold(Wait::BackOff { attempt: 1 }),
        }
    }

    fn store_answered(&self, holds: &mut Holds) {
        holds.store_failures = 0;
        self.shared.set_store_failing(false);
    }

    /// Holds the delivery. True when it may stay no longer.
    async fn hold(&self, wait: Wait, keyed: &Keyed, holds: &mut Holds, stay: &Stay) -> bool {
        let _held = (self.shared.hold(), Present::in_gauge_of(observe::EVENTS_HELD, self.name()));
        let span = match wait {
            Wait::BackOff { attempt } => self.back_off.pause(attempt),
            Wait::Change { within } => within,
            Wait::Store => self.back_off.store_pause(holds.store_failures),
        };
        let until = Instant::now() + span;
        let waited = match wait {
            // It would come to nothing before the end.
            _ if !matches!(wait, Wait::Change { .. }) && stay.until.is_some_and(|end| until >= end) => None,
            Wait::BackOff { .. } => {
                holds.slot = None;
                stay.unless_over(tokio::time::sleep_until(until)).await
            }
            Wait::Store => {
                holds.slot = None;
                stay.unless_over(timeout(span, self.shared.store_answers())).await.map(drop)
            }
            Wait::Change { .. } => stay.unless_over(self.change(keyed.id, until, holds)).await,
        };
        waited.is_none()
    }

    /// Waits until the record of another attempt may have changed. The first time it only begins to watch the record: the
    /// key is to be claimed once more before the first wait, because it may have changed before.
    async fn change(&self, id: RecordId, until: Instant, holds: &mut Holds) {
        let engine = &self.hapax.engine;
        if !engine.wait_for_change(&mut holds.slot, id, Some(until)).await && holds.slot.is_none() {
            // Too many wait for changes already.
            tokio::time::sleep_until(until.min(Instant::now() + UNWATCHED_PAUSE)).await;
        }
    }
}

/// How often a record is claimed again that cannot be watched.
const UNWATCHED_PAUSE: Duration = Duration::from_secs(1);

impl Stay {
    /// `None` when it is over first.
    async fn unless_over<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            done = self.unless_late(future) => done,
        }
    }

    /// `None` when the invocation ends first.
    async fn unless_late<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        match self.until {
            None => Some(future.await),
            Some(until) => tokio::time::timeout_at(until, future).await.ok(),
        }
    }
}
