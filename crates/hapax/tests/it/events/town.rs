//! Shared by the tests of consumers: a process with a consumer, a broker, and handlers that count what they do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hapax::core::{Lookup, RecordId, State, Store};
use hapax::events::dead_letter::{DeadLetter, Filter, list};
use hapax::events::{Consumer, Event, Handled, Router, RunError};
use hapax::{Context, Fail, Hapax};
use hapax_testkit::Faulty;
use hapax_testkit::events::MemoryBroker;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::world::World;

/// One process that consumes.
#[derive(Clone)]
pub(crate) struct Town {
    pub(crate) hapax: Hapax,
    pub(crate) faulty: Faulty,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) broker: MemoryBroker,
    pub(crate) consumer: Consumer,
    pub(crate) effects: Effects,
}

/// What the handlers did, by the id of the event.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<Inner>);

#[derive(Default)]
struct Inner {
    by_id: Mutex<BTreeMap<String, Vec<u32>>>,
    order: Mutex<Vec<String>>,
    began: Notify,
    go_on: Notify,
}

impl Effects {
    /// Performs the effect of an event.
    pub(crate) fn happen(&self, event: &Event, cx: &Context) {
        let id = event.id.clone().unwrap_or_default();
        self.0.by_id.lock().entry(id.clone()).or_default().push(cx.attempt());
        self.0.order.lock().push(id);
        self.0.began.notify_one();
    }

    /// The attempts that had an effect.
    pub(crate) fn attempts(&self, id: &str) -> Vec<u32> {
        self.0.by_id.lock().get(id).cloned().unwrap_or_default()
    }

    /// How often each event had its effect.
    pub(crate) fn counts(&self) -> Vec<usize> {
        self.0.by_id.lock().values().map(Vec::len).collect()
    }

    /// The ids of the events, in the order of their effects.
    pub(crate) fn order(&self) -> Vec<String> {
        self.0.order.lock().clone()
    }

    /// Waits until an effect has happened that was not waited for.
    pub(crate) async fn began(&self) {
        self.0.began.notified().await;
    }

    /// Lets two handlers of `test.slow` go on: one of a process that is gone, and its successor.
    pub(crate) async fn both_go_on(&self) {
        crate::world::settle_down().await;
        self.go_on();
        self.go_on();
    }

    /// Lets one handler of `test.slow` go on.
    pub(crate) fn go_on(&self) {
        self.0.go_on.notify_one();
    }
}

/// The handlers: by its type, an event succeeds, fails, fails at first, is refused, panics, is unknown or waits.
pub(crate) fn router(effects: &Effects) -> Router<Effects> {
    type Outcome = Result<u32, Fail<String>>;
    Router::new(effects.clone())
        .on("test.ok", |effects: Effects, cx: Context, event: Event| async move {
            effects.happen(&event, &cx);
            Ok::<_, String>(cx.attempt())
        })
        .on("test.fails", |effects: Effects, cx: Context, event: Event| async move {
            effects.happen(&event, &cx);
            Err::<(), _>("out of stock".to_owned())
        })
        .on("test.fails_twice", |effects: Effects, cx: Context, event: Event| async move {
            effects.happen(&event, &cx);
            if cx.attempt() < 3 { Err("busy".to_owned()) } else { Ok(cx.attempt()) }
        })
        .on("test.refused", |effects: Effects, cx: Context, event: Event| async move {
            effects.happen(&event, &cx);
            Outcome::Err(Fail::permanent("no such order".to_owned()))
        })
        .on("test.panics", |effects: Effects, cx: Context, event: Event| async move {
            effects.happen(&event, &cx);
            assert!(event.id.is_none(), "a handler that panics");
            Ok::<u32, String>(0)
        })
        .on("test.unknown", |effects: Effects, cx: Context, event: Event| async move {
            effects.happen(&event, &cx);
            Outcome::Err(Fail::Unknown("no answer".to_owned()))
        })
        .on("test.slow", |effects: Effects, cx: Context, event: Event| async move {
            effects.happen(&event, &cx);
            effects.0.go_on.notified().await;
            Ok::<_, String>(cx.attempt())
        })
        .on(
            "test.number",
            |effects: Effects,
             cx: Context,
             (event, hapax::events::Data(number)): (Event, hapax::events::Data<u32>)| async move {
                effects.happen(&event, &cx);
                Ok::<_, String>(number)
            },
        )
}

pub(crate) fn event(kind: &str, id: &str) -> Event {
    Event::new(kind).id(id).data(format!("{{\"id\":\"{id}\"}}"))
}

impl Town {
    pub(crate) fn new() -> Self {
        Self::of(World::new(), MemoryBroker::new())
    }

    pub(crate) fn of(world: World, broker: MemoryBroker) -> Self {
        let World { hapax, faulty, store, .. } = world;
        let consumer = Consumer::new(&hapax, "billing");
        Self { hapax, faulty, store, broker, consumer, effects: Effects::default() }
    }

    /// With other options of the consumer.
    pub(crate) fn with(mut self, adapt: impl FnOnce(Consumer) -> Consumer) -> Self {
        self.consumer = adapt(self.consumer);
        self
    }

    /// Another process with the same store, broker and effects.
    pub(crate) fn second(&self, adapt: impl FnOnce(Consumer) -> Consumer) -> Self {
        let world = World::over(self.store.clone(), |builder| builder);
        let town = Self::of(world, self.broker.clone()).with(adapt);
        Self { effects: self.effects.clone(), ..town }
    }

    pub(crate) fn router(&self) -> Router<Effects> {
        router(&self.effects)
    }

    /// Delivers an event and handles it.
    pub(crate) async fn handle(&self, event: Event) -> Handled {
        self.broker.send(event);
        self.handle_next().await
    }

    /// Handles the next delivery of the broker.
    pub(crate) async fn handle_next(&self) -> Handled {
        use hapax::events::Source as _;
        let delivery = self.broker.source().next().await.unwrap();
        self.consumer.handle(delivery, &self.router()).await
    }

    /// Runs until everything is done with.
    pub(crate) async fn run_to_the_end(&self) -> Result<(), RunError> {
        self.broker.close();
        self.consumer.run(self.broker.source(), self.router()).until(std::future::pending()).await
    }

    pub(crate) async fn dead_letters(&self) -> Vec<DeadLetter> {
        list(&*self.store, &Filter::default(), None).await.unwrap().dead_letters
    }

    /// The reasons of all dead letters.
    pub(crate) async fn dead(&self) -> Vec<String> {
        let mut reasons: Vec<String> =
            self.dead_letters().await.into_iter().map(|letter| letter.reason).collect();
        reasons.sort();
        reasons
    }

    /// The states of all records.
    pub(crate) async fn states(&self) -> Vec<State> {
        let page = self.store.list(&hapax::core::Query::default()).await.unwrap();
        let mut states: Vec<State> = page.records.iter().map(|record| record.state_at(page.now)).collect();
        states.sort();
        states
    }

    pub(crate) async fn state_of(&self, id: &RecordId) -> Option<State> {
        match self.store.get(id).await.unwrap() {
            Lookup::Found { record, now } => Some(record.state_at(now)),
            _ => None,
        }
    }

    /// Asserts that the broker has nothing left and has got this many acknowledgements.
    pub(crate) fn assert_acked(&self, acked: usize) {
        let broker = &self.broker;
        assert_eq!((broker.acked().len(), broker.waiting(), broker.in_flight()), (acked, 0, 0));
    }
}

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
