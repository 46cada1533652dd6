//! Dead letters: listed, discarded, and redriven without losing one.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use hapax::core::{Deleted, State, StoreErrorKind};
use hapax::events::dead_letter::{
    DeadReason, Filter, NoDeadLetter, REDRIVE_HEADER, Redrive, discard, list, show,
};
use hapax::events::{Event, Handled, PublishErrorKind, Source as _};
use hapax_testkit::events::{BrokerCall, BrokerFault, MemoryBroker};
use hapax_testkit::{Fault, Op, Plan, Point, ReferenceStore, TokioClock};

use super::town::{Town, event};
use crate::world::{LEASE, World, settle_down};

impl Town {
    async fn redrive(&self) -> u64 {
        Redrive::new(&*self.store, &self.broker).run().await.unwrap().published
    }

    /// A consumer that processes what the first one does not know.
    fn repaired(&self) -> hapax::events::Router<super::town::Effects> {
        self.router().otherwise(
            |effects: super::town::Effects, cx: hapax::Context, event: Event| async move {
                effects.happen(&event, &cx);
                Ok::<_, String>(())
            },
        )
    }

    async fn handle_repaired(&self) -> Handled {
        let delivery = self.broker.source().next().await.unwrap();
        self.consumer.handle(delivery, &self.repaired()).await
    }
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_listed_by_filter_and_page() {
    let town = Town::new();
    let billings = town.second(|_| hapax::events::Consumer::new(&town.hapax, "billings"));
    for number in 0..150 {
        town.handle(event("test.new", &number.to_string())).await;
    }
    town.handle(event("test.refused", "r").subject("order-1")).await;
    billings.handle(event("test.new", "1")).await;
    town.handle(event("test.ok", "ok")).await;

    let count = async |filter: Filter| {
        let (mut cursor, mut count) = (None, 0);
        loop {
            let page = list(&*town.store, &filter, cursor).await.unwrap();
            count += page.dead_letters.len();
            cursor = page.next;
            if cursor.is_none() {
                return count;
            }
        }
    };
    assert_eq!(count(Filter::default()).await, 152);
    assert_eq!(count(Filter::default().consumer("billing")).await, 151, "not those of `billings`");
    assert_eq!(count(Filter::default().kind("test.refused")).await, 1);
    assert_eq!(count(Filter::default().subject("order-1")).await, 1);
    assert_eq!(count(Filter::default().reason(DeadReason::UnknownType)).await, 151);
    assert_eq!(count(Filter::default().namespace("staging")).await, 0);
    assert_eq!(count(Filter::default().age_min(Duration::from_secs(60))).await, 0);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(count(Filter::default().age_min(Duration::from_secs(60))).await, 152);
    assert_eq!(count(Filter::default().age_max(Duration::from_secs(59))).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_shown_and_discarded() {
    let town = Town::new();
    town.handle(event("test.new", "1")).await;
    let letter = town.dead_letters().await.remove(0);
    assert_eq!(show(&*town.store, &letter.id).await.unwrap().as_ref(), Ok(&letter));
    let mut older = letter.clone();
    older.nonce = hapax::core::Nonce::from_bytes([1; 16]);
    assert_eq!(discard(&*town.store, &older).await.unwrap(), Deleted::Changed);
    assert_eq!(discard(&*town.store, &letter).await.unwrap(), Deleted::Applied);
    assert_eq!(show(&*town.store, &letter.id).await.unwrap(), Err(NoDeadLetter::Absent));
    town.handle(event("test.ok", "2")).await;
    let done = town.store.list(&hapax::core::Query::default()).await.unwrap().records.remove(0);
    assert_eq!(show(&*town.store, &done.key.id).await.unwrap(), Err(NoDeadLetter::Other));
}

#[tokio::test(start_paused = true)]
async fn v_07_a_redriven_event_is_processed_once_and_its_dead_letter_is_gone() {
    let town = Town::new();
    town.handle(event("test.new", "1")).await;
    assert_eq!(town.redrive().await, 1);
    assert_eq!(town.redrive().await, 1, "redriving twice is harmless");
    assert_eq!(town.dead().await.len(), 1, "it stays until the event has come back");
    assert_eq!(town.handle_repaired().await, Handled::Ran);
    assert_eq!(town.handle_repaired().await, Handled::Duplicate);
    assert_eq!((town.dead().await.len(), town.effects.attempts("1").len()), (0, 1));
    assert_eq!(town.states().await, [State::Completed]);
    town.assert_acked(3);
}

#[tokio::test(start_paused = true)]
async fn v_07_an_event_that_fails_again_is_a_new_dead_letter() {
    let town = Town::new();
    town.handle(event("test.refused", "1")).await;
    town.redrive().await;
    let older = town.broker.source().next().await.unwrap();
    let older = hapax::events::Delivery::event(&older).clone();
    town.broker.disconnect();
    assert_eq!(town.handle_next().await, Handled::Dead);
    let letter = town.dead_letters().await.remove(0);
    assert_eq!(town.effects.attempts("1"), [1, 1], "a redriven event is counted anew");
    // A copy that names the older dead letter does not remove the newer one.
    assert_eq!(town.handle(older).await, Handled::Dead);
    assert_eq!(town.dead_letters().await, [letter]);
    assert_eq!(town.effects.attempts("1"), [1, 1]);
    // Neither does one that names none.
    assert_eq!(town.handle(event("test.refused", "1")).await, Handled::Dead);
    assert_eq!(town.effects.attempts("1"), [1, 1]);
}

/// A process dies between the removal of the dead letter and the claim, and at the removal itself.
#[tokio::test(start_paused = true)]
async fn v_07_the_event_is_held_by_record_or_broker_at_every_moment() {
    for (op, nth, point) in [
        (Op::Delete, 1, Point::Before),
        (Op::Delete, 1, Point::After),
        (Op::Claim, 2, Point::Before),
        (Op::Claim, 2, Point::After),
        (Op::Complete, 1, Point::Before),
        (Op::Complete, 1, Point::After),
    ] {
        let town = Town::of(World::new(), MemoryBroker::with_deadline(LEASE));
        town.handle(event("test.new", "1")).await;
        town.redrive().await;
        town.faulty.set_plan(Plan::new().at_nth(op, nth, Fault::Crash(point)));
        let dying = town.clone();
        let dying = tokio::spawn(async move { dying.handle_repaired().await });
        town.faulty.crashed().await;
        dying.abort();
        settle_down().await;
        assert_eq!(town.broker.acked().len(), 1, "only the first delivery");
        let next = town.second(|consumer| consumer);
        let handled = next.handle_repaired().await;
        let is_recorded = (op, point) == (Op::Complete, Point::After);
        assert_eq!(handled, if is_recorded { Handled::Duplicate } else { Handled::Ran }, "{op} {point:?}");
        assert_eq!(town.states().await, [State::Completed], "{op} {point:?}");
        town.assert_acked(2);
    }
}

#[tokio::test(start_paused = true)]
async fn v_07_a_lost_answer_of_the_removal_is_no_loss() {
    for fault in [Fault::AnswerLost, Fault::ErrorBefore(StoreErrorKind::Unavailable)] {
        let town = Town::new();
        town.handle(event("test.new", "1")).await;
        town.redrive().await;
        town.faulty.set_plan(Plan::new().at_nth(Op::Delete, 1, fault));
        assert_eq!(town.handle_repaired().await, Handled::Ran);
        assert_eq!(town.states().await, [State::Completed]);
    }
}

#[tokio::test(start_paused = true)]
async fn v_07_what_the_broker_did_not_confirm_stays() {
    let town = Town::new();
    for number in 0..3 {
        town.handle(event("test.new", &number.to_string())).await;
    }
    town.broker.fail_nth(BrokerCall::Publish, 2, BrokerFault::Lost);
    let report = Redrive::new(&*town.store, &town.broker).run().await.unwrap();
    assert_eq!((report.matched.len(), report.published), (3, 2));
    assert_eq!(
        report.failed.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(),
        [PublishErrorKind::Unavailable]
    );
    assert!(report.stopped.is_some());
    assert_eq!(town.dead().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_redrive_can_be_tried_out_filtered_and_limited_in_rate() {
    let town = Town::new();
    for number in 0..10 {
        town.handle(event("test.new", &number.to_string())).await;
    }
    town.handle(event("test.refused", "r")).await;
    let filter = || Filter::default().reason(DeadReason::UnknownType);
    let redrive = || Redrive::new(&*town.store, &town.broker).filter(filter());
    let dry = redrive().dry_run().run().await.unwrap();
    assert_eq!((dry.matched.len(), dry.published, town.broker.waiting()), (10, 0, 0));
    let began = tokio::time::Instant::now();
    let slow = redrive().per_second_max(NonZeroU32::new(2).unwrap()).run().await.unwrap();
    assert_eq!((slow.published, began.elapsed()), (10, Duration::from_secs(5)));
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_destination_is_redriven_to_a_given_one() {
    let town = Town::new();
    let new = event("test.new", "1");
    let refused =
        town.consumer.process(&new, |_cx| async { Err::<(), _>(hapax::Fail::permanent("no".to_owned())) });
    assert!(refused.await.is_err());
    let report = Redrive::new(&*town.store, &town.broker).run().await.unwrap();
    assert_eq!((report.published, report.without_destination.len()), (0, 1));
    let report = Redrive::new(&*town.store, &town.broker).destination("queue").run().await.unwrap();
    assert_eq!(report.published, 1);
    assert_eq!(town.handle_repaired().await, Handled::Ran);
}

/// The dead letter of a reused key is in a record of its own.
#[tokio::test(start_paused = true)]
async fn v_07_a_dead_letter_beside_its_key_is_gone_once_its_event_has_an_outcome() {
    let town = Town::new();
    town.handle(event("test.ok", "1")).await;
    let other = event("test.ok", "1").data("another");
    assert_eq!(town.handle(other.clone()).await, Handled::Dead);
    town.redrive().await;
    assert_eq!(town.handle_next().await, Handled::Dead, "its key is still another event's");
    assert_eq!(town.dead().await, ["reused"]);

    // An operator removes the wrong record, and redrives.
    let page = town.store.list(&hapax::core::Query::default()).await.unwrap();
    let first = page.records.iter().find(|record| record.state() == State::Completed).unwrap();
    town.hapax.delete(first).await.unwrap();
    town.redrive().await;
    assert_eq!(town.handle_next().await, Handled::Ran);
    assert_eq!((town.dead().await.len(), town.states().await), (0, vec![State::Completed]));
}

/// A producer can write any header.
#[tokio::test(start_paused = true)]
async fn v_07_only_the_nonce_of_a_dead_letter_removes_it() {
    let town = Town::new();
    town.handle(event("test.new", "1")).await;
    let forged = event("test.new", "1").header(REDRIVE_HEADER, "00".repeat(16));
    assert_eq!(town.handle(forged).await, Handled::Dead);
    assert_eq!(town.dead().await.len(), 1);
    town.handle(event("test.ok", "2")).await;
    let page = town.store.list(&hapax::core::Query::default()).await.unwrap();
    let done = page.records.iter().find(|record| record.state() == State::Completed).unwrap();
    let nonce: String = done.fence.nonce.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let forged = event("test.ok", "3")
        .header(REDRIVE_HEADER, nonce)
        .header(hapax::events::dead_letter::REDRIVE_RECORD_HEADER, done.key.id.to_string());
    assert_eq!(town.handle(forged).await, Handled::Ran);
    assert_eq!(town.state_of(&done.key.id).await, Some(State::Completed), "it is not a dead letter");
}

/// A store that takes 1000 bytes.
fn small() -> Town {
    let store = ReferenceStore::new(TokioClock::new()).outcome_bytes_max(1000);
    Town::of(World::over(Arc::new(store), |builder| builder), MemoryBroker::new())
}

#[tokio::test(start_paused = true)]
async fn v_05_a_dead_letter_that_does_not_fit_is_given_back() {
    let large = |kind: &str| event(kind, "1").data(vec![b'x'; 1000]);
    let town = small();
    assert_eq!(town.handle(large("test.refused")).await, Handled::GivenBack);
    assert_eq!((town.states().await, town.broker.waiting()), (vec![State::Released], 1));

    let town = small().with(|consumer| consumer.crashes_max(1));
    assert_eq!(town.handle(large("test.panics")).await, Handled::GivenBack);
    assert_eq!(town.states().await, [State::Uncertain], "nothing is settled without the event");

    let town = small();
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran);
    assert_eq!(town.handle(large("test.ok")).await, Handled::GivenBack);
    assert_eq!((town.states().await, town.broker.acked().len()), (vec![State::Completed], 1));
}
