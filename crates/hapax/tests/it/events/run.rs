//! Everything that a source delivers: bounds, order, a store that is down, the drain.

use std::time::Duration;

use hapax::core::StoreErrorKind;
use hapax::events::{Event, RunError};
use hapax_testkit::events::{BrokerCall, BrokerFault, Duplicator, MemoryBroker};
use hapax_testkit::{Fault, Op, Plan};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::town::{MINUTE, Town, event};
use crate::world::{LEASE, World, settle_down};

const DOWN: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);

impl Town {
    /// Runs until the sender is used.
    fn start(&self) -> (oneshot::Sender<()>, JoinHandle<Result<(), RunError>>) {
        let (shut_down, requested) = oneshot::channel();
        let run = self.consumer.run(self.broker.source(), self.router());
        let run = tokio::spawn(run.until(async move {
            let _ = requested.await;
        }));
        (shut_down, run)
    }
}

#[tokio::test(start_paused = true)]
async fn v_03_a_thousand_events_delivered_twice_have_a_thousand_effects() {
    for seed in [1, 2, 3] {
        let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
        for number in 0..1000 {
            town.broker.send(event("test.ok", &number.to_string()));
        }
        for nth in 1..50 {
            town.broker.fail_nth(BrokerCall::Ack, 20 * nth, BrokerFault::Lost);
        }
        town.broker.close();
        let source = Duplicator::new(town.broker.source(), seed);
        let run = town.consumer.run(source, town.router());
        run.until(std::future::pending()).await.unwrap();
        assert_eq!(town.effects.counts(), [1; 1000], "seed {seed}");
        town.assert_acked(1000);
    }
}

#[tokio::test(start_paused = true)]
async fn v_10_events_of_one_order_run_one_after_the_other() {
    let town = Town::new();
    for number in 0..60 {
        let order = ["a", "b", "c"][number % 3];
        let kind = if number == 3 { "test.fails_twice" } else { "test.ok" };
        town.broker.send(event(kind, &format!("{order}{number:02}")).order(order));
    }
    town.run_to_the_end().await.unwrap();
    let order = town.effects.order();
    for lane in ["a", "b", "c"] {
        let mut of_lane: Vec<&String> = order.iter().filter(|id| id.starts_with(lane)).collect();
        of_lane.dedup();
        assert!(of_lane.is_sorted(), "{of_lane:?}");
        assert_eq!(of_lane.len(), 20);
    }
    assert_eq!(town.effects.attempts("a03"), [1, 2, 3]);
    let ended = |id: &str| order.iter().rposition(|other| other == id).unwrap();
    assert!(ended("b58") < ended("a03"), "a failing event blocks its own order only");
    town.assert_acked(60);
}

#[tokio::test(start_paused = true)]
async fn v_10_behind_a_dead_letter_its_order_goes_on() {
    let town = Town::new();
    town.broker.send(event("test.fails", "1").order("a"));
    town.broker.send(event("test.ok", "2").order("a"));
    town.run_to_the_end().await.unwrap();
    assert_eq!((town.dead().await, town.effects.attempts("2")), (vec!["failed".to_owned()], vec![1]));
    assert_eq!(town.effects.order().last().map(String::as_str), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn handlers_and_deliveries_in_hand_are_bounded() {
    let town = Town::new().with(|consumer| consumer.concurrency(2).in_hand_max(3));
    for number in 0..10 {
        town.broker.send(event("test.slow", &number.to_string()));
    }
    let (shut_down, run) = town.start();
    settle_down().await;
    let health = town.consumer.health();
    assert_eq!((health.running, health.in_hand, town.broker.in_flight()), (2, 3, 3));
    assert_eq!(town.effects.counts(), [1, 1]);
    shut_down.send(()).unwrap();
    settle_down().await;
    assert_eq!(town.broker.in_flight(), 2, "the one that waits for its turn is given back");
    town.effects.go_on();
    settle_down().await;
    town.effects.go_on();
    run.await.unwrap().unwrap();
    assert_eq!((town.broker.acked().len(), town.broker.waiting()), (2, 8));
}

#[tokio::test(start_paused = true)]
async fn a_held_event_takes_no_place_among_the_running_ones() {
    let town = Town::new().with(|consumer| consumer.concurrency(1));
    town.broker.send(event("test.fails", "1"));
    for number in 2..5 {
        town.broker.send(event("test.ok", &number.to_string()));
    }
    let (shut_down, run) = town.start();
    settle_down().await;
    assert_eq!(town.effects.counts(), [1, 1, 1, 1]);
    assert_eq!(town.consumer.health().held, 1);
    shut_down.send(()).unwrap();
    run.await.unwrap().unwrap();
    assert_eq!((town.broker.acked().len(), town.broker.waiting()), (3, 1), "held: given back at once");
}

#[tokio::test(start_paused = true)]
async fn v_09_a_store_that_cannot_be_asked_stops_the_source() {
    let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
    town.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    for number in 0..500 {
        town.broker.send(event("test.ok", &number.to_string()));
    }
    let (shut_down, run) = town.start();
    tokio::time::sleep(10 * MINUTE).await;
    assert!(!town.consumer.health().is_ready);
    let asked = town.broker.delivered();
    assert!(asked <= 64, "{asked} deliveries for 64 in hand");
    assert_eq!(town.broker.acked().len(), 0);
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(town.broker.delivered(), asked, "held, and not asked for more");

    town.faulty.set_plan(Plan::new());
    tokio::time::sleep(MINUTE).await;
    assert!(town.consumer.health().is_ready);
    town.assert_acked(500);
    assert_eq!(town.effects.counts(), [1; 500]);
    shut_down.send(()).unwrap();
    run.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_drain_reports_handlers_that_do_not_end() {
    let town = Town::new();
    town.broker.send(event("test.slow", "1"));
    let (shut_down, run) = town.start();
    town.effects.began().await;
    shut_down.send(()).unwrap();
    assert_eq!(run.await.unwrap(), Err(RunError::Undrained { left: 1 }));
    assert_eq!((town.broker.acked().len(), town.broker.in_flight()), (0, 1));
    // What it records in the time that is left to the process is known to the next delivery.
    town.effects.go_on();
    settle_down().await;
    town.broker.disconnect();
    let second = town.second(|consumer| consumer);
    assert_eq!(second.handle_next().await, hapax::events::Handled::Duplicate);
}

#[tokio::test(start_paused = true)]
async fn two_processes_share_a_queue() {
    let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
    for number in 0..200 {
        for _copy in 0..2 {
            town.broker.send(event("test.ok", &number.to_string()));
        }
    }
    town.broker.close();
    let second = town.second(|consumer| consumer);
    let (first, other) = tokio::join!(town.run_to_the_end(), second.run_to_the_end());
    assert_eq!((first, other), (Ok(()), Ok(())));
    assert_eq!(town.effects.counts(), [1; 200]);
    town.assert_acked(400);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_empty_is_waited_for() {
    let town = Town::new();
    let (shut_down, run) = town.start();
    tokio::time::sleep(Duration::from_secs(5)).await;
    town.broker.send(Event::new("test.ok").id("1"));
    settle_down().await;
    town.assert_acked(1);
    shut_down.send(()).unwrap();
    run.await.unwrap().unwrap();
}
