//! A process dies, or a call fails, at each point between two calls of the store: what its broker and the next process
//! make of it.

use std::sync::Arc;

use hapax::core::{State, StoreErrorKind};
use hapax::events::{Event, Handled, Source as _};
use hapax_testkit::events::MemoryBroker;
use hapax_testkit::{Fault, Op, Plan, Point, ReferenceStore, TokioClock};

use super::town::{Town, event};
use crate::world::{LEASE, World, settle_down};

/// A process handles the event and dies at this point of this call; another one gets the event after the broker's deadline.
async fn dies(kind: &str, op: Op, point: Point) -> (Town, Handled) {
    let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
    town.faulty.set_plan(Plan::new().at_nth(op, 1, Fault::Crash(point)));
    town.broker.send(event(kind, "1"));
    let delivery = town.broker.source().next().await.unwrap();
    let (consumer, router) = (town.consumer.clone(), town.router());
    let dying = tokio::spawn(async move { consumer.handle(delivery, &router).await });
    town.faulty.crashed().await;
    dying.abort();
    settle_down().await;
    assert_eq!(town.broker.acked().len(), 0, "V-02: nothing was acknowledged before the crash");
    let next = town.second(|consumer| consumer);
    let handled = next.handle_next().await;
    town.assert_acked(1);
    (town, handled)
}

#[tokio::test(start_paused = true)]
async fn v_02_a_process_that_dies_before_its_claim_is_applied_leaves_no_trace() {
    let (town, handled) = dies("test.ok", Op::Claim, Point::Before).await;
    assert_eq!((handled, town.effects.attempts("1")), (Handled::Ran, vec![1]));
}

#[tokio::test(start_paused = true)]
async fn v_02_a_process_that_dies_after_its_claim_is_replaced_after_the_lease() {
    let (town, handled) = dies("test.ok", Op::Claim, Point::After).await;
    assert_eq!((handled, town.effects.attempts("1")), (Handled::Ran, vec![2]));
}

#[tokio::test(start_paused = true)]
async fn v_02_a_process_that_dies_after_the_effect_makes_a_second_one() {
    let (town, handled) = dies("test.ok", Op::Complete, Point::Before).await;
    assert_eq!((handled, town.effects.attempts("1")), (Handled::Ran, vec![1, 2]), "at least once");
}

#[tokio::test(start_paused = true)]
async fn v_03_a_process_that_dies_after_recording_has_processed_the_event() {
    let (town, handled) = dies("test.ok", Op::Complete, Point::After).await;
    assert_eq!((handled, town.effects.attempts("1")), (Handled::Duplicate, vec![1]));
}

#[tokio::test(start_paused = true)]
async fn v_05_a_dead_letter_is_recorded_before_it_is_acknowledged() {
    let (town, handled) = dies("test.refused", Op::Complete, Point::Before).await;
    assert_eq!((handled, town.effects.attempts("1")), (Handled::Dead, vec![1, 2]));
    let (town, handled) = dies("test.refused", Op::Complete, Point::After).await;
    assert_eq!((handled, town.effects.attempts("1")), (Handled::Dead, vec![1]));
    assert_eq!(town.dead().await, ["permanent"]);
}

#[tokio::test(start_paused = true)]
async fn v_05_a_failure_that_was_not_released_counts_as_a_silent_end() {
    let (town, handled) = dies("test.fails_twice", Op::Release, Point::Before).await;
    assert_eq!((handled, town.effects.attempts("1")), (Handled::Ran, vec![1, 2, 3]));
    let (town, handled) = dies("test.fails_twice", Op::Release, Point::After).await;
    assert_eq!((handled, town.effects.attempts("1")), (Handled::Ran, vec![1, 2, 3]));
}

/// An event that kills every process that runs it.
#[tokio::test(start_paused = true)]
async fn v_05_an_event_that_kills_its_processes_is_a_dead_letter() {
    let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
    town.broker.send(event("test.slow", "1"));
    for attempt in 1..=3 {
        let dying = town.second(|consumer| consumer);
        let handled = {
            let dying = dying.clone();
            tokio::spawn(async move { dying.handle_next().await })
        };
        town.effects.began().await;
        assert_eq!(town.effects.attempts("1").last(), Some(&attempt));
        dying.faulty.crash();
        handled.abort();
    }
    assert_eq!(town.handle_next().await, Handled::Dead);
    let letters = town.dead_letters().await;
    assert_eq!((&*letters[0].reason, letters[0].attempt), ("crashed", 3));
    assert!(letters[0].event == event("test.slow", "1"));
    assert_eq!(town.states().await, [State::Failed]);
    town.assert_acked(1);
}

/// The settlement of the dead letter is a call, too.
#[tokio::test(start_paused = true)]
async fn v_05_a_process_that_dies_while_it_settles_leaves_it_to_the_next() {
    for point in Point::ALL {
        let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE))
            .with(|consumer| consumer.crashes_max(1));
        town.faulty.set_plan(Plan::new().at_nth(Op::Settle, 1, Fault::Crash(point)));
        town.broker.send(event("test.panics", "1"));
        let dying = town.clone();
        let dying = tokio::spawn(async move { dying.handle_next().await });
        town.faulty.crashed().await;
        dying.abort();
        let next = town.second(|consumer| consumer.crashes_max(1));
        assert_eq!(next.handle_next().await, Handled::Dead);
        assert_eq!((town.dead().await, town.effects.attempts("1")), (vec!["crashed".to_owned()], vec![1]));
        town.assert_acked(1);
    }
}

/// Every call of every kind fails once, before or after it is applied: one effect, recorded and acknowledged.
#[tokio::test(start_paused = true)]
async fn v_02_a_failed_call_of_the_store_is_made_again() {
    let faults = [
        Fault::ErrorBefore(StoreErrorKind::Unavailable),
        Fault::AnswerLost,
        Fault::ErrorBefore(StoreErrorKind::Unknown),
    ];
    for fault in faults {
        for op in [Op::Claim, Op::Complete] {
            let town = Town::new();
            town.faulty.set_plan(Plan::new().at_nth(op, 1, fault));
            assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran, "{op} {fault:?}");
            assert_eq!(town.faulty.fired().len(), 1);
            assert_eq!(town.effects.attempts("1").len(), 1, "{op} {fault:?}");
            town.assert_acked(1);
        }
    }
}

/// An attempt whose outcome the store drops again and again, as a transaction that is never committed.
#[tokio::test(start_paused = true)]
async fn v_05_an_event_that_never_records_an_outcome_is_a_dead_letter() {
    let town = Town::new().with(|consumer| consumer.tries_max(1).crashes_max(1));
    released_twice(&town, &event("test.ok", "1")).await;
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Dead);
    assert_eq!((town.dead().await, town.effects.counts().len()), (vec!["lost".to_owned()], 0));
    town.assert_acked(1);
}

/// Its dead letter does not fit into the store: the broker keeps it.
#[tokio::test(start_paused = true)]
async fn v_05_an_event_whose_dead_letter_does_not_fit_is_never_acknowledged() {
    let store = ReferenceStore::new(TokioClock::new()).outcome_bytes_max(1000);
    let town = Town::of(World::over(Arc::new(store), |builder| builder), MemoryBroker::new())
        .with(|consumer| consumer.tries_max(1).crashes_max(1));
    let large = || event("test.ok", "1").data(vec![b'x'; 1000]);
    released_twice(&town, &large()).await;
    assert_eq!(town.handle(large()).await, Handled::GivenBack);
    assert_eq!((town.states().await, town.broker.acked().len()), (vec![State::Released], 0));
}

/// Two attempts whose outcome the store releases, although the handler completed.
async fn released_twice(town: &Town, event: &Event) {
    for attempt in 1..=2 {
        let permit = match town.hapax.claim(operation(event)).await {
            Ok(hapax::engine::Claimed::Run(permit)) => permit,
            other => panic!("{other:?}"),
        };
        assert_eq!(permit.context().attempt(), attempt);
        permit.finish(hapax::engine::Finish::Release(None)).await.unwrap();
    }
}

/// The operation of an event, as the consumer claims it.
fn operation(event: &Event) -> hapax::engine::Operation {
    let key = hapax::events::EventKey::of(event, hapax::events::Unnamed::Refuse).unwrap().key;
    hapax::engine::Operation::new(hapax::Scope::new("billing"), &key, hapax::Policy::default())
        .fingerprint(event.fingerprint())
}
