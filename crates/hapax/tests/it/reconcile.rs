//! Settling uncertain records: by an operator, or by a reconciler.

use std::sync::Arc;

use hapax::core::{Class, Format, Lookup, Reason, Recorded, Settled, State, Store, Verdict};
use hapax::{MemoryStore, OnceError, Policy, Reconciled};
use hapax_testkit::{ReferenceStore, TokioClock};

use crate::world::{LEASE, World};

/// A world in which the outcome of `k` is uncertain.
async fn uncertain() -> World {
    uncertain_on(MemoryStore::with_clock(TokioClock::new())).await
}

/// The same on this store.
async fn uncertain_on(store: impl Store) -> World {
    let world = World::over(Arc::new(store), |builder| builder);
    let owner = world.second();
    let slow = owner.start_slow("k", |policy| policy).await;
    owner.faulty.crash();
    slow.caller.abort();
    tokio::time::sleep(2 * LEASE).await;
    assert!(matches!(world.charge("k").await, Err(OnceError::Uncertain { reason: Reason::Lapsed, .. })));
    world
}

fn applied(payload: &'static str) -> Verdict {
    let recorded = Recorded::new(Class::Success, Format::FUNCTION, payload);
    Verdict::Applied { recorded, retention: LEASE }
}

#[tokio::test(start_paused = true)]
async fn settled_as_applied_the_given_result_is_replayed() {
    let world = uncertain().await;
    assert_eq!(world.settle("k", applied("41")).await, Settled::Applied);
    let replay = world.charge("k").await.unwrap();
    assert_eq!((replay.value, replay.replayed, world.effects.count()), (41, true, 1));
}

#[tokio::test(start_paused = true)]
async fn settled_as_not_applied_the_operation_may_run() {
    let world = uncertain().await;
    assert_eq!(world.settle("k", Verdict::NotApplied).await, Settled::Applied);
    assert_eq!(world.charge("k").await.unwrap().value, 2);
}

#[tokio::test(start_paused = true)]
async fn only_uncertain_records_can_be_settled() {
    let world = World::new();
    assert_eq!(world.settle("k", applied("1")).await, Settled::Absent);
    let slow = world.start_slow("k", |policy| policy).await;
    let refused = Settled::NotUncertain(State::InProgress);
    assert_eq!(world.settle("k", applied("1")).await, refused);
    slow.answer().await.unwrap();
    let refused = Settled::NotUncertain(State::Completed);
    assert_eq!(world.settle("k", Verdict::NotApplied).await, refused);
}

#[tokio::test(start_paused = true)]
async fn a_late_owner_of_a_settled_record_returns_the_settlement() {
    use hapax_testkit::{Fault, Op, Plan};
    let world = World::new();
    let down = Fault::ErrorBefore(hapax::core::StoreErrorKind::Unavailable);
    world.faulty.set_plan(Plan::new().always(Op::Renew, down));
    let slow = world.start_slow("k", |policy| policy).await;
    tokio::time::sleep(2 * LEASE).await;
    let person = world.second();
    assert_eq!(person.settle("k", applied("41")).await, Settled::Applied);
    let late = slow.answer().await.unwrap();
    assert_eq!((late.value, late.replayed), (41, true));
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_with_the_result_settles_with_it() {
    let world = uncertain().await;
    let effects = world.effects.clone();
    let once = world.hapax.once("charge", "k").reconcile(|question| async move {
        assert_eq!(question.fence.attempt, 1);
        Reconciled::Applied(41)
    });
    let done = once.run(move |_cx| async move { Ok::<_, String>(effects.happen()) }).await.unwrap();
    assert_eq!((done.value, done.replayed, world.effects.count()), (41, true, 1));
    assert_eq!(world.charge("k").await.unwrap().value, 41);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_to_record_settles_all_the_same() {
    let by_store = || uncertain_on(ReferenceStore::new(TokioClock::new()).outcome_bytes_max(100));
    for (world, bytes_max) in [(by_store().await, usize::MAX), (uncertain().await, 100)] {
        let once = world.hapax.once("charge", "k").policy(Policy::default().outcome_bytes_max(bytes_max));
        let once = once.reconcile(|_question| async { Reconciled::Applied("x".repeat(101)) });
        let answer = once.run(|_cx| async { Ok::<String, String>(String::new()) }).await;
        assert!(matches!(answer, Err(OnceError::ResultUnavailable { source: None })), "{answer:?}");
        assert_eq!((world.state("k").await, world.effects.count()), (Some(State::Completed), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_returns_not_applied_lets_the_operation_run() {
    let world = uncertain().await;
    let once = world.hapax.once("charge", "k").reconcile(|_question| async { Reconciled::<u32>::NotApplied });
    let done = once.run(|cx| async move { Ok::<_, String>(cx.attempt()) }).await.unwrap();
    assert_eq!((done.value, done.replayed), (2, false));
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_returns_unknown_or_panics_leaves_the_record_uncertain() {
    let world = uncertain().await;
    let unsure = world.hapax.once("charge", "k").reconcile(|_question| async { Reconciled::<u32>::Unknown });
    let answer = unsure.run(|_cx| async { Ok::<u32, String>(0) }).await;
    assert!(matches!(answer, Err(OnceError::Uncertain { .. })));
    let broken = world.hapax.once("charge", "k").reconcile(|question| async move {
        assert!(question.fence.attempt > 1, "a defect in the reconciler");
        Reconciled::Applied(1)
    });
    let answer = broken.run(|_cx| async { Ok::<u32, String>(0) }).await;
    assert!(matches!(answer, Err(OnceError::Uncertain { .. })));
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_reconciler_blocks_no_caller_beyond_the_deadline() {
    let world = uncertain().await;
    let once = world.hapax.once("charge", "k").deadline(LEASE).reconcile(|_question| async {
        std::future::pending::<()>().await;
        Reconciled::Applied(1)
    });
    let answer = once.run(|_cx| async { Ok::<u32, String>(0) }).await;
    assert!(matches!(answer, Err(OnceError::Deadline { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_verdict_about_one_attempt_does_not_settle_another() {
    let world = uncertain().await;
    let Lookup::Found { record: looked_at, .. } = world.hapax.get("charge", "k").await.unwrap() else {
        panic!()
    };
    // Meanwhile an operator releases the key, and the next attempt is lost as well.
    assert_eq!(world.settle("k", Verdict::NotApplied).await, Settled::Applied);
    let owner = world.second();
    let slow = owner.start_slow("k", |policy| policy).await;
    owner.faulty.crash();
    slow.caller.abort();
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(world.hapax.settle(&looked_at, Verdict::NotApplied).await.unwrap(), Settled::Changed);
    assert!(matches!(world.charge("k").await, Err(OnceError::Uncertain { .. })));
}
