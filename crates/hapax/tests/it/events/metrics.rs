//! What a consumer reports: outcomes, retries, dead letters, what is held, and never a key or data.

use hapax::core::StoreErrorKind;
use hapax::events::Event;
use hapax::observe;
use hapax_testkit::events::{BrokerCall, BrokerFault, MemoryBroker};
use hapax_testkit::{Fault, Op, Plan};
use metrics_util::debugging::{DebugValue, Snapshotter};

use super::town::{Town, event};
use crate::watched::watch;
use crate::world::{LEASE, World};

const CANARY: &str = "canary-5d27";

fn watched<F: Future<Output = ()>>(scene: impl FnOnce() -> F) -> (String, Snapshotter) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let ((), logs, counted) = watch(|| runtime.block_on(async { scene().await }));
    (logs, counted)
}

/// The values of the metrics of consumers, as `name label=value`, sorted.
fn counted(snapshotter: &Snapshotter) -> Vec<String> {
    let mut counted = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(|label| label.value()).collect();
        if labels.first() != Some(&"billing") {
            continue;
        }
        let value = match value {
            DebugValue::Counter(count) => count.to_string(),
            DebugValue::Gauge(value) => value.to_string(),
            DebugValue::Histogram(values) => values.len().to_string(),
        };
        counted.push(format!("{} {} {value}", key.key().name(), labels[1..].join(" ")));
    }
    counted.sort();
    counted
}

#[test]
fn every_event_is_counted_with_one_outcome() {
    let (_, snapshotter) = watched(|| async {
        let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
        town.handle(event("test.ok", "1")).await;
        town.handle(event("test.ok", "1")).await;
        town.handle(event("test.fails_twice", "2")).await;
        town.handle(event("test.fails", "3")).await;
        town.handle(event("test.new", "4")).await;
        town.handle(event("test.new", "4")).await;
        town.handle(event("test.panics", "5")).await;
        town.broker.fail_nth(BrokerCall::Ack, 1, BrokerFault::Lost);
        town.handle(event("test.ok", "6")).await;
        town.consumer.stop();
        town.handle_next().await;
    });
    let expected = [
        "hapax_dead_letters_total crashed 1",
        "hapax_dead_letters_total failed 1",
        "hapax_dead_letters_total unknown_type 1",
        "hapax_delivery_errors_total ack 1",
        "hapax_event_retries_total  9",
        "hapax_events_held  0",
        "hapax_events_in_hand  0",
        "hapax_events_total dead 4",
        "hapax_events_total duplicate 1",
        "hapax_events_total given_back 1",
        "hapax_events_total ran 3",
    ];
    assert_eq!(counted(&snapshotter), expected);
}

#[test]
fn the_age_of_a_replayed_record_is_reported_as_a_part_of_its_retention() {
    let (_, snapshotter) = watched(|| async {
        // This store answers by claims only, as those on servers do.
        let store = hapax_testkit::ReferenceStore::new(hapax_testkit::TokioClock::new());
        let world = World::over(std::sync::Arc::new(store), |builder| builder);
        let town = Town::of(world, MemoryBroker::new()).with(|consumer| consumer.retention(4 * LEASE));
        town.handle(event("test.ok", "1")).await;
        tokio::time::sleep(LEASE).await;
        town.handle(event("test.ok", "1")).await;
    });
    let ages: Vec<DebugValue> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .filter(|(key, ..)| key.key().name() == observe::REPLAY_AGE)
        .map(|(.., value)| value)
        .collect();
    let [DebugValue::Histogram(ages)] = &ages[..] else { panic!("{ages:?}") };
    assert!(ages.len() == 1 && (0.24..=0.26).contains(&ages[0].into_inner()), "{ages:?}");
}

#[test]
fn logs_and_metrics_show_neither_keys_nor_data() {
    let (logs, snapshotter) = watched(|| async {
        let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
        let secret = |kind: &str| {
            Event::new(kind)
                .id(format!("{kind}{CANARY}"))
                .subject(CANARY)
                .order(CANARY)
                .header("token", CANARY)
                .data(CANARY)
        };
        for kind in ["test.ok", "test.fails", "test.new", "test.panics", "test.number"] {
            town.handle(secret(kind)).await;
        }
        town.handle(secret("test.ok").data(format!("{CANARY}, another"))).await;
        let down = Fault::ErrorBefore(StoreErrorKind::Unavailable);
        town.faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, down));
        town.broker.fail_nth(BrokerCall::Ack, 1, BrokerFault::Lost);
        town.handle(secret("test.ok").id(format!("2{CANARY}"))).await;
    });
    assert!(logs.contains("hapax.event") && logs.contains("consumer=\"billing\""), "{logs}");
    assert!(logs.contains("an event became a dead letter"), "{logs}");
    assert!(!logs.contains(CANARY), "{logs}");
    for (key, ..) in snapshotter.snapshot().into_vec() {
        assert!(!format!("{key:?}").contains(CANARY), "{key:?}");
    }
}
