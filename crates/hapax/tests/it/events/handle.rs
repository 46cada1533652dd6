//! One delivery at a time: each row of the table from outside, on a store and a broker.

use hapax::OnLapse;
use hapax::core::{Reason, State, StoreErrorKind};
use hapax::events::{DeadLetters, Handled, Source as _};
use hapax_testkit::events::{BrokerCall, BrokerFault, MemoryBroker};
use hapax_testkit::{Fault, Op, Plan};

use super::town::{MINUTE, Town, event};
use crate::world::{LEASE, World, settle_down};

const DOWN: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);

#[tokio::test(start_paused = true)]
async fn v_02_an_event_is_acknowledged_once_it_is_recorded() {
    let town = Town::new();
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran);
    assert_eq!(town.states().await, [State::Completed]);
    town.assert_acked(1);
}

#[tokio::test(start_paused = true)]
async fn v_03_an_event_is_deduplicated_by_its_id() {
    let town = Town::new();
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran);
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Duplicate);
    assert_eq!(town.handle(event("test.ok", "2")).await, Handled::Ran);
    assert_eq!(town.effects.counts(), [1, 1]);
    town.assert_acked(3);
}

#[tokio::test(start_paused = true)]
async fn v_08_an_unknown_type_is_a_dead_letter_and_is_not_skipped() {
    let town = Town::new();
    assert_eq!(town.handle(event("test.new", "1")).await, Handled::Dead);
    let letters = town.dead_letters().await;
    assert_eq!((letters.len(), &*letters[0].reason), (1, "unknown_type"));
    assert!(letters[0].error.contains("test.new"), "{}", letters[0].error);
    assert!(letters[0].event == event("test.new", "1"));
    town.assert_acked(1);
}

#[tokio::test(start_paused = true)]
async fn v_02_a_failed_event_stays_unprocessed_and_is_processed_at_its_next_delivery() {
    let town = Town::new();
    town.broker.send(event("test.fails_twice", "1"));
    let delivery = town.broker.source().next().await.unwrap();
    let (consumer, router) = (town.consumer.clone(), town.router());
    let first = tokio::spawn(async move { consumer.handle(delivery, &router).await });
    town.effects.began().await;
    settle_down().await;
    assert_eq!(town.states().await, [State::Released]);
    // Its process is gone, and the broker notices.
    first.abort();
    town.broker.disconnect();
    town.assert_nothing_acked();
    assert_eq!(town.handle_next().await, Handled::Ran);
    assert_eq!(town.effects.attempts("1"), [1, 2, 3]);
    town.assert_acked(1);
}

impl Town {
    fn assert_nothing_acked(&self) {
        assert_eq!(self.broker.acked().len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn v_05_a_failure_is_tried_again_and_dead_at_the_last_try() {
    let town = Town::new();
    assert_eq!(town.handle(event("test.fails", "1")).await, Handled::Dead);
    assert_eq!(town.effects.attempts("1"), (1..=8).collect::<Vec<u32>>());
    let letters = town.dead_letters().await;
    assert_eq!((&*letters[0].reason, &*letters[0].error, letters[0].attempt), ("failed", "out of stock", 8));
    assert_eq!(letters[0].destination.as_deref(), Some("queue"));
    assert_eq!(town.handle(event("test.fails", "1")).await, Handled::Dead, "a copy of it");
    assert_eq!(town.effects.counts(), [8]);
    town.assert_acked(2);
}

#[tokio::test(start_paused = true)]
async fn v_05_what_no_try_can_help_is_dead_at_once() {
    let town = Town::new();
    assert_eq!(town.handle(event("test.refused", "1")).await, Handled::Dead);
    assert_eq!(town.handle(event("test.number", "2")).await, Handled::Dead);
    assert_eq!(town.dead().await, ["permanent", "undecodable"]);
    assert_eq!(town.effects.counts(), [1]);
    town.assert_acked(2);
}

#[tokio::test(start_paused = true)]
async fn v_05_a_handler_that_panics_is_tried_and_then_dead() {
    let town = Town::new();
    assert_eq!(town.handle(event("test.panics", "1")).await, Handled::Dead);
    assert_eq!(town.effects.attempts("1"), [1, 2, 3]);
    let letters = town.dead_letters().await;
    assert_eq!(letters[0].reason, "crashed");
    assert!(letters[0].error.contains(Reason::Panicked.words()), "{}", letters[0].error);
    assert!(letters[0].event == event("test.panics", "1"));
    town.assert_acked(1);
}

#[tokio::test(start_paused = true)]
async fn v_05_an_unknown_outcome_counts_as_a_silent_end() {
    let town = Town::new();
    assert_eq!(town.handle(event("test.unknown", "1")).await, Handled::Dead);
    assert_eq!((town.effects.attempts("1").len(), town.dead().await), (3, vec!["crashed".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn v_05_an_at_most_once_consumer_never_runs_a_handler_again() {
    let town = Town::new().with(|consumer| consumer.on_lapse(OnLapse::Uncertain));
    assert_eq!(town.handle(event("test.panics", "1")).await, Handled::Dead);
    assert_eq!((town.effects.attempts("1"), town.dead().await), (vec![1], vec!["uncertain".to_owned()]));
    town.assert_acked(1);
}

/// Copies in one process: the second is neither acknowledged nor run while the first runs.
#[tokio::test(start_paused = true)]
async fn v_04_an_event_in_progress_is_held_until_it_has_ended() {
    let town = Town::new();
    town.broker.send(event("test.slow", "1"));
    town.broker.send(event("test.slow", "1"));
    let handled = |town: Town| tokio::spawn(async move { town.handle_next().await });
    let first = handled(town.clone());
    town.effects.began().await;
    let second = handled(town.clone());
    tokio::time::sleep(3 * LEASE).await;
    assert_eq!((town.effects.counts(), town.broker.in_flight()), (vec![1], 2));
    assert_eq!(town.consumer.health().held, 1);
    town.effects.go_on();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (Handled::Ran, Handled::Duplicate));
    town.assert_acked(2);
}

/// In two processes, the first of which dies: the second runs it once the lease has lapsed.
#[tokio::test(start_paused = true)]
async fn v_04_an_event_of_a_dead_process_is_taken_over_after_its_lease() {
    let town = Town::new();
    town.broker.send(event("test.slow", "1"));
    let dying = town.clone();
    let first = tokio::spawn(async move { dying.handle_next().await });
    town.effects.began().await;
    town.faulty.crash();
    first.abort();
    town.broker.disconnect();
    let second = town.second(|consumer| consumer);
    let second = tokio::spawn(async move { second.handle_next().await });
    town.effects.began().await;
    town.effects.both_go_on().await;
    assert_eq!(second.await.unwrap(), Handled::Ran);
    assert_eq!(town.effects.attempts("1"), [1, 2]);
    town.assert_acked(1);
}

#[tokio::test(start_paused = true)]
async fn v_06_another_event_under_the_same_key_is_a_dead_letter() {
    let town = Town::new();
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran);
    let other = || event("test.ok", "1").data("{\"another\":true}");
    assert_eq!(town.handle(other()).await, Handled::Dead);
    assert_eq!(town.handle(other()).await, Handled::Dead, "a copy of it");
    let letters = town.dead_letters().await;
    assert_eq!((letters.len(), &*letters[0].reason), (1, "reused"));
    assert!(letters[0].event == other());
    assert_eq!(town.states().await, [State::Completed, State::Failed], "the first record is unchanged");
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Duplicate);
    assert_eq!(town.effects.counts(), [1]);
    town.assert_acked(4);
}

#[tokio::test(start_paused = true)]
async fn v_09_while_the_store_is_down_the_delivery_is_held() {
    let broker = MemoryBroker::with_deadline(LEASE);
    let town = Town::of(World::new(), broker);
    town.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    let held = town.clone();
    let held = tokio::spawn(async move { held.handle(event("test.ok", "1")).await });
    tokio::time::sleep(10 * MINUTE).await;
    assert!(town.consumer.health().is_store_failing && !town.consumer.health().is_ready);
    assert_eq!((town.broker.in_flight(), town.broker.delivered()), (1, 1), "extended all the time");
    assert!(town.broker.calls(BrokerCall::Extend) >= 30);
    town.faulty.set_plan(Plan::new());
    assert_eq!(held.await.unwrap(), Handled::Ran);
    assert!(town.consumer.health().is_ready);
    town.assert_acked(1);
}

/// A handler that runs longer than the broker waits.
#[tokio::test(start_paused = true)]
async fn the_deadline_is_extended_while_the_handler_runs() {
    let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
    town.broker.fail_nth(BrokerCall::Extend, 1, BrokerFault::Lost);
    let slow = town.clone();
    let slow = tokio::spawn(async move { slow.handle(event("test.slow", "1")).await });
    town.effects.began().await;
    tokio::time::sleep(10 * LEASE).await;
    town.effects.go_on();
    assert_eq!(slow.await.unwrap(), Handled::Ran);
    assert_eq!(town.broker.delivered(), 1);
    town.assert_acked(1);
}

#[tokio::test(start_paused = true)]
async fn v_12_a_lost_acknowledgement_changes_nothing() {
    for fault in [BrokerFault::Lost, BrokerFault::AnswerLost] {
        let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
        town.broker.fail_nth(BrokerCall::Ack, 1, fault);
        assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran);
        if fault == BrokerFault::Lost {
            town.assert_nothing_acked();
            assert_eq!(town.handle_next().await, Handled::Duplicate, "delivered again, known, acknowledged");
        }
        town.assert_acked(1);
        assert_eq!(town.effects.counts(), [1]);
    }
}

#[tokio::test(start_paused = true)]
async fn v_02_an_event_whose_outcome_cannot_be_stored_is_not_acknowledged() {
    let town = Town::new();
    town.faulty.set_plan(Plan::new().always(Op::Complete, DOWN));
    let held = town.clone();
    let held = tokio::spawn(async move { held.handle(event("test.ok", "1")).await });
    tokio::time::sleep(10 * MINUTE).await;
    town.assert_nothing_acked();
    assert_eq!(town.effects.attempts("1"), [1], "its own lease is renewed meanwhile");
    town.faulty.set_plan(Plan::new());
    assert_eq!(held.await.unwrap(), Handled::Duplicate);
    assert_eq!(town.effects.attempts("1"), [1]);
    town.assert_acked(1);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_given_back_when_the_consumer_stops() {
    let town = Town::new();
    let held = town.clone();
    let held = tokio::spawn(async move { held.handle(event("test.fails", "1")).await });
    town.effects.began().await;
    settle_down().await;
    town.consumer.stop();
    assert_eq!(held.await.unwrap(), Handled::GivenBack);
    assert_eq!((town.broker.waiting(), town.broker.in_flight()), (1, 0));
    assert_eq!(town.handle_next().await, Handled::GivenBack, "and so is all that comes later");
}

#[tokio::test(start_paused = true)]
async fn a_draining_process_gives_back() {
    let town = Town::new();
    town.hapax.drain(LEASE).await;
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::GivenBack);
    assert_eq!((town.broker.waiting(), town.effects.counts().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn v_05_with_dead_letters_of_the_broker_every_failure_goes_back_to_it() {
    let town = Town::of(World::new(), MemoryBroker::new().deliveries_max(4))
        .with(|consumer| consumer.dead_letters(DeadLetters::Broker));
    for kind in ["test.fails", "test.refused", "test.panics"] {
        town.broker.send(event(kind, kind));
        for _ in 0..4 {
            assert_eq!(town.handle_next().await, Handled::GivenBack, "{kind}");
        }
        assert_eq!(town.effects.attempts(kind), [1, 2, 3, 4], "{kind}");
    }
    assert_eq!(town.broker.dead().len(), 3);
    assert_eq!(town.dead_letters().await, []);
    assert_eq!(town.broker.waiting(), 0);
}

/// A large event is not held in memory for minutes.
#[tokio::test(start_paused = true)]
async fn a_large_event_is_given_back_after_one_back_off() {
    let town = Town::new().with(|consumer| consumer.event_bytes_max(100));
    let large = || event("test.fails", "1").data(vec![b'x'; 101]);
    assert_eq!(town.handle(large()).await, Handled::GivenBack);
    assert_eq!(town.effects.attempts("1"), [1]);
    assert_eq!(town.handle_next().await, Handled::GivenBack);
    assert_eq!(town.effects.attempts("1"), [1, 2]);
}
