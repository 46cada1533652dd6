//! What makes two deliveries one event, and for how long.

use std::sync::Arc;
use std::time::Duration;

use hapax::MemoryStore;
use hapax::core::{ManualClock, Store};
use hapax::events::{Consumer, Event, Handled, Unnamed};

use super::town::{Town, event};
use crate::world::World;
use hapax_testkit::events::MemoryBroker;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test(start_paused = true)]
async fn v_03_an_event_is_remembered_for_30_days_from_its_completion() {
    let clock = ManualClock::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()));
    let town = Town::of(World::over(store.clone(), |builder| builder), MemoryBroker::new());
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran);
    clock.advance(30 * DAY - Duration::from_secs(1));
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Duplicate);
    clock.advance(Duration::from_secs(1));
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran, "its record has expired");

    // A dead letter is not: it is the only copy of its event.
    assert_eq!(town.handle(event("test.refused", "2")).await, Handled::Dead);
    clock.advance(3650 * DAY);
    while store.sweep(1000).await.unwrap().more {}
    assert_eq!(town.dead().await, ["permanent"]);
    assert_eq!(town.handle(event("test.refused", "2")).await, Handled::Dead);
}

#[tokio::test(start_paused = true)]
async fn two_consumers_each_process_every_event() {
    let town = Town::new();
    let mailing = town.second(|_| Consumer::new(&town.hapax, "mailing"));
    let elsewhere = town.second(|consumer| consumer.namespace("staging"));
    for town in [&town, &mailing, &elsewhere] {
        assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran);
        assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Duplicate);
    }
    assert_eq!(town.effects.counts(), [3]);
}

#[tokio::test(start_paused = true)]
async fn v_01_an_event_without_any_identity_is_a_dead_letter() {
    let town = Town::new();
    let unnamed = || Event::new("test.ok").data("x");
    assert_eq!(town.handle(unnamed()).await, Handled::Dead);
    assert_eq!(town.handle(unnamed()).await, Handled::Dead);
    assert_eq!(town.dead().await, ["unnamed", "unnamed"], "equal content may be two events: both are kept");
    assert_eq!(town.effects.counts().len(), 0);
    town.assert_acked(2);

    let by_content = town.second(|consumer| consumer.unnamed(Unnamed::ByContent));
    assert_eq!(by_content.handle(unnamed()).await, Handled::Ran);
    assert_eq!(by_content.handle(unnamed()).await, Handled::Duplicate);
}

#[tokio::test(start_paused = true)]
async fn v_01_a_delivery_is_recognised_by_its_position() {
    let town = Town::new();
    let at = |stream: &str, at: u32| Event::new("test.ok").position(stream, at).data("x");
    assert_eq!(town.handle(at("ORDERS@1", 7)).await, Handled::Ran);
    assert_eq!(town.handle(at("ORDERS@1", 7)).await, Handled::Duplicate);
    assert_eq!(town.handle(at("ORDERS@1", 8)).await, Handled::Ran);
    assert_eq!(town.handle(at("ORDERS@2", 7)).await, Handled::Ran, "the stream was created again");
}
