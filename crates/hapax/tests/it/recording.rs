//! Lost replies and failing stores: every crash point between two store calls, by name.

use std::sync::Arc;
use std::time::Duration;

use hapax::core::{Claim, Lookup, Reason, State, StoreErrorKind};
use hapax::{OnLapse, OnceError};
use hapax_testkit::{Fault, Op, Plan, Point, ReferenceStore, TokioClock};

use crate::world::{LEASE, World, settle_down};

const DOWN: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_at_claim_refuses_and_nothing_runs() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    let refused = world.charge("k").await;
    assert!(matches!(refused, Err(OnceError::Store(error)) if error.kind() == StoreErrorKind::Unavailable));
    assert_eq!((world.effects.count(), world.faulty.calls()), (0, 1));
    world.faulty.set_plan(Plan::new());
    assert_eq!(world.charge("k").await.unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_reply_is_lost_is_repeated_and_runs_once_as_the_first_attempt() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, Fault::AnswerLost).at_nth(
        Op::Claim,
        2,
        Fault::AnswerLost,
    ));
    let done =
        world.hapax.once("charge", "k").run(|cx| async move { Ok::<_, String>(cx.attempt()) }).await.unwrap();
    assert_eq!(
        (done.value, done.replayed),
        (1, false),
        "the repeat has the same nonce, so it is the same attempt"
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_stays_unknown_is_released_after_the_refusal() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Claim, Fault::AnswerLost));
    assert!(matches!(world.charge("k").await, Err(OnceError::Store(error)) if error.is_unknown()));
    settle_down().await;
    assert_eq!(world.state("k").await, Some(State::Released), "nothing ran, so the key is free");
    world.faulty.set_plan(Plan::new());
    assert_eq!(world.charge("k").await.unwrap().value, 1);
}

/// Claims without a reply that have not arrived: as many as are attempted.
fn unanswered_claims() -> Plan {
    let lost = Fault::ErrorBefore(StoreErrorKind::Unknown);
    (1..=4).fold(Plan::new(), |plan, nth| plan.at_nth(Op::Claim, nth, lost))
}

#[tokio::test(start_paused = true)]
async fn d_05_a_claim_that_arrives_after_its_cancellation_is_refused() {
    let world = World::new();
    world.faulty.set_plan(unanswered_claims());
    assert!(matches!(world.charge("k").await, Err(OnceError::Store(error)) if error.is_unknown()));
    settle_down().await;
    assert_eq!(world.state("k").await, Some(State::Released), "nothing ran, so the key is free");
    // One of its requests was in transit all the time.
    let latecomer = world.faulty.last_claim().unwrap();
    assert!(matches!(world.store.claim(&latecomer).await, Ok(Claim::Busy { .. })));
    assert_eq!(world.charge("k").await.unwrap().value, 1);
}

/// The claim arrives after its release has found nothing, and before the key is looked up.
async fn arrives_during_cancellation(world: &World) {
    world.faulty.set_plan(unanswered_claims().at_nth(Op::Get, 1, Fault::Stall(Point::Before)));
    assert!(matches!(world.charge("k").await, Err(OnceError::Store(error)) if error.is_unknown()));
    while !world.faulty.fired().iter().any(|fired| fired.op == Op::Get) {
        tokio::task::yield_now().await;
    }
    let latecomer = world.faulty.last_claim().unwrap();
    assert!(matches!(world.store.claim(&latecomer).await, Ok(Claim::Acquired(_))));
}

#[tokio::test(start_paused = true)]
async fn d_05_a_claim_that_arrives_during_its_cancellation_is_released() {
    let world = World::new();
    arrives_during_cancellation(&world).await;
    world.faulty.resume();
    settle_down().await;
    assert_eq!(world.state("k").await, Some(State::Released));
    assert_eq!(world.charge("k").await.unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_arrives_during_its_cancellation_is_released_also_while_draining() {
    let world = World::new();
    arrives_during_cancellation(&world).await;
    let goes_on = async {
        settle_down().await;
        world.faulty.resume();
    };
    assert_eq!(tokio::join!(world.hapax.drain(LEASE), goes_on).0.left, 0);
    assert_eq!(world.state("k").await, Some(State::Released));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_claim_does_not_affect_another_attempt() {
    let world = World::new();
    let rerun = |policy: hapax::Policy| policy.on_lapse(OnLapse::Rerun);
    let second = world.second();
    let _slow = second.start_slow("k", rerun).await;
    second.faulty.crash();
    tokio::time::sleep(2 * LEASE).await;
    let fence = async || match world.hapax.get("charge", "k").await {
        Ok(Lookup::Found { record, .. }) => record.fence,
        other => panic!("{other:?}"),
    };
    let before = fence().await;
    world.faulty.set_plan(unanswered_claims());
    assert!(world.charge_with("k", rerun).await.is_err());
    settle_down().await;
    assert_eq!(fence().await, before, "only a request that runs it again may take it over");
}

#[tokio::test(start_paused = true)]
async fn a_claim_cancelled_while_draining_leaves_no_record() {
    let world = World::new();
    world.faulty.set_plan(unanswered_claims());
    assert!(world.charge("k").await.is_err());
    assert_eq!(world.hapax.drain(LEASE).await.left, 0);
    assert_eq!(world.state("k").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_or_stalls_counts_as_a_lost_reply() {
    for fault in [Fault::Panic(Point::After), Fault::Stall(Point::After), Fault::Panic(Point::Before)] {
        for op in [Op::Claim, Op::Complete] {
            let world = World::new();
            world.faulty.set_plan(Plan::new().at_nth(op, 1, fault));
            let done = world.charge("k").await.unwrap();
            assert_eq!((done.value, done.recorded), (1, true), "{fault:?} at {op}");
            assert!(world.charge("k").await.unwrap().replayed, "{fault:?} at {op}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_reply_is_refused_within_the_timeout_and_nothing_runs() {
    let timeout = Duration::from_secs(3);
    let world = World::with(|builder| builder.store_timeout(timeout));
    world.faulty.set_plan(Plan::new().always(Op::Claim, Fault::Stall(Point::Before)));
    let began = tokio::time::Instant::now();
    assert!(matches!(world.charge("k").await, Err(OnceError::Store(_))));
    let took = began.elapsed();
    assert!(
        took <= timeout + Duration::from_millis(100),
        "simulated time: {took:?}, with the pauses between the attempts"
    );
    assert_eq!(world.effects.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_completion_whose_reply_is_lost_is_repeated() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().at_nth(Op::Complete, 1, Fault::AnswerLost));
    let done = world.charge("k").await.unwrap();
    assert!(done.recorded);
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_recorded_is_returned_as_unrecorded_and_recorded_later() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Complete, DOWN));
    let done = world.charge("k").await.unwrap();
    assert_eq!((done.value, done.replayed, done.recorded), (1, false, false));
    // Until it is recorded a duplicate is refused as in progress, and its lease is renewed: never a second run.
    tokio::time::sleep(2 * LEASE).await;
    assert!(matches!(world.second().charge("k").await, Err(OnceError::InProgress { .. })));
    world.faulty.set_plan(Plan::new());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let replay = world.charge("k").await.unwrap();
    assert_eq!((replay.value, replay.replayed), (1, true));
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_completion_by_the_owner_is_accepted_after_the_record_was_uncertain() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Complete, DOWN).always(Op::Renew, DOWN));
    assert!(!world.charge("k").await.unwrap().recorded);
    tokio::time::sleep(2 * LEASE).await;
    assert!(matches!(
        world.second().charge("k").await,
        Err(OnceError::Uncertain { reason: Reason::Lapsed, .. })
    ));
    world.faulty.set_plan(Plan::new());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.state("k").await, Some(State::Completed));
    assert_eq!(world.charge("k").await.unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_too_large_for_the_store_is_recorded_as_not_kept() {
    let world = World::new();
    let too_large = Fault::ErrorBefore(StoreErrorKind::TooLarge);
    world.faulty.set_plan(Plan::new().at_nth(Op::Complete, 1, too_large).at_nth(Op::Release, 1, too_large));
    assert!(world.charge("k").await.unwrap().recorded);
    assert!(matches!(world.charge("k").await, Err(OnceError::ResultUnavailable { .. })));
    assert_eq!(world.effects.count(), 1);
    let failed = world.hapax.once("charge", "j").run(|_cx| async { Err::<u32, _>("no".to_owned()) }).await;
    assert!(matches!(failed, Err(OnceError::Failed(_))));
    assert_eq!(world.state("j").await, Some(State::Released));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_over_the_limit_of_the_store_is_not_sent_to_it() {
    // The quotes of a JSON string take two bytes.
    let cases = [
        (Ok(98), State::Completed, true),
        (Ok(99), State::Completed, false),
        (Err(1), State::Released, true),
        (Err(100), State::Released, false),
    ];
    for (ends_with, state, is_kept) in cases {
        let store = ReferenceStore::new(TokioClock::new()).outcome_bytes_max(100);
        let world = World::over(Arc::new(store), |builder| builder);
        let text = |length| "x".repeat(length);
        let run =
            world.hapax.once("charge", "k").run(move |_cx| async move { ends_with.map(text).map_err(text) });
        match run.await {
            Ok(done) => assert_eq!((Ok(done.value.len()), done.recorded), (ends_with, true)),
            Err(OnceError::Failed(text)) => assert_eq!(Err(text.len()), ends_with),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(world.faulty.calls(), 2, "a claim, and a write that is accepted");
        let Lookup::Found { record, .. } = world.hapax.get("charge", "k").await.unwrap() else { panic!() };
        let kept = record.recorded().is_some_and(|recorded| !recorded.is_empty());
        assert_eq!((record.state(), kept), (state, is_kept), "{ends_with:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_reply_is_lost_releases_the_key_all_the_same() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().at_nth(Op::Release, 1, Fault::AnswerLost));
    let failed = world.hapax.once("charge", "k").run(|_cx| async { Err::<u32, _>("no".to_owned()) }).await;
    assert!(matches!(failed, Err(OnceError::Failed(_))));
    assert_eq!(world.state("k").await, Some(State::Released));
    assert_eq!(world.charge("k").await.unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_stays_visible_with_its_error() {
    let world = World::new();
    let failed =
        world.hapax.once("charge", "k").run(|_cx| async { Err::<u32, _>("no route".to_owned()) }).await;
    assert!(failed.is_err());
    let Lookup::Found { record, .. } = world.hapax.get("charge", "k").await.unwrap() else {
        panic!("a tombstone")
    };
    let answered = record.recorded().expect("an outcome");
    assert!(String::from_utf8_lossy(&answered.payload).contains("no route"));
    assert_eq!((record.state(), record.fence.attempt), (State::Released, 1));
}

#[tokio::test(start_paused = true)]
async fn a_superseded_owner_returns_the_pinned_outcome() {
    let world = World::new();
    let rerun = |policy: hapax::Policy| policy.on_lapse(OnLapse::Rerun);
    world.faulty.set_plan(Plan::new().always(Op::Renew, DOWN));
    let slow = world.start_slow("k", rerun).await;
    tokio::time::sleep(2 * LEASE).await;
    let taken = world.second().charge_with("k", rerun).await.unwrap();
    assert_eq!((taken.value, taken.replayed), (2, false));
    let late = slow.answer().await.unwrap();
    assert_eq!(
        (late.value, late.replayed),
        (2, true),
        "one outcome for all callers, although the effect happened twice"
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_superseded_by_a_running_attempt_returns_superseded() {
    let world = World::new();
    let rerun = |policy: hapax::Policy| policy.on_lapse(OnLapse::Rerun);
    world.faulty.set_plan(Plan::new().always(Op::Renew, DOWN));
    let slow = world.start_slow("k", rerun).await;
    tokio::time::sleep(2 * LEASE).await;
    let second = world.second();
    let other = second.start_slow("k", rerun).await;
    assert!(matches!(slow.answer().await, Err(OnceError::Superseded { .. })));
    assert_eq!(other.answer().await.unwrap().value, 2);
}

#[tokio::test(start_paused = true)]
async fn a_claim_confirmed_after_a_whole_lease_is_cancelled_and_repeated() {
    // The timers of this process fire late: its store call returns after the lease has lapsed.
    let world = World::with(|builder| builder.store_timeout(Duration::from_secs(3600)));
    world.faulty.observe(|step| {
        if step.op == Op::Claim && step.call == 1 && step.point == Point::After {
            futures_util::FutureExt::now_or_never(tokio::time::advance(2 * LEASE));
        }
    });
    let done =
        world.hapax.once("charge", "k").run(|cx| async move { Ok::<_, String>(cx.attempt()) }).await.unwrap();
    assert_eq!(done.value, 2, "the first attempt was released without running");
}

#[tokio::test(start_paused = true)]
async fn claims_that_are_always_confirmed_too_late_are_refused_and_nothing_runs() {
    let world = World::new();
    world.faulty.observe(|step| {
        if step.op == Op::Claim && step.point == Point::After {
            futures_util::FutureExt::now_or_never(tokio::time::advance(2 * LEASE));
        }
    });
    let refused = world.charge("k").await;
    assert!(matches!(refused, Err(OnceError::Store(error)) if error.kind() == StoreErrorKind::Unavailable));
    assert_eq!((world.effects.count(), world.state("k").await), (0, Some(State::Released)));
}

#[tokio::test(start_paused = true)]
async fn a_claim_cancelled_while_the_store_is_down_is_released_when_it_recovers() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Release, DOWN));
    world.faulty.observe(|step| {
        if step.op == Op::Claim && step.call == 1 && step.point == Point::After {
            futures_util::FutureExt::now_or_never(tokio::time::advance(2 * LEASE));
        }
    });
    let caller = tokio::spawn({
        let world = world.clone();
        async move { world.charge("k").await }
    });
    let answer = caller.await.unwrap();
    assert!(answer.is_err(), "its own claim blocks it: {answer:?}");
    world.faulty.set_plan(Plan::new());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.state("k").await, Some(State::Released), "nothing ran, so there is nothing to settle");
    assert_eq!(world.charge("k").await.unwrap().value, 1);
}
