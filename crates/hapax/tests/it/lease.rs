//! Renewal, lapse, takeover, and what a run can find out about its lease.

use std::sync::Arc;
use std::time::Duration;

use hapax::core::{Reason, State, StoreErrorKind};
use hapax::{Hapax, MemoryStore, OnLapse, OnceError, Policy};
use hapax_testkit::{Fault, Op, Plan};
use tokio::sync::Notify;

use crate::world::{LEASE, World};

const DOWN: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);

#[tokio::test(start_paused = true)]
async fn a_run_longer_than_its_lease_renews_it() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    tokio::time::sleep(10 * LEASE).await;
    assert!(matches!(world.second().charge("k").await, Err(OnceError::InProgress { .. })));
    assert!(world.faulty.calls() >= 20, "renewed about three times a lease: {}", world.faulty.calls());
    assert_eq!(slow.answer().await.unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_retried_within_the_lease() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().at_nth(Op::Renew, 1, DOWN).at_nth(Op::Renew, 2, Fault::AnswerLost));
    let slow = world.start_slow("k", |policy| policy).await;
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(world.state("k").await, Some(State::InProgress));
    slow.answer().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_lease_is_uncertain_and_nothing_runs_again() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Renew, DOWN));
    let slow = world.start_slow("k", |policy| policy).await;
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    let second = world.second();
    assert!(matches!(second.charge("k").await, Err(OnceError::Uncertain { reason: Reason::Lapsed, .. })));
    assert!(slow.answer().await.unwrap().recorded, "the owner still holds the record");
    assert!(second.charge("k").await.unwrap().replayed);
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn at_least_once_takes_a_lapsed_lease_over_until_attempts_are_used_up() {
    let world = World::new();
    let rerun = |policy: Policy| policy.on_lapse(OnLapse::Rerun).attempts_max(3);
    for attempt in 1..=3 {
        let process = world.second();
        let slow = process.start_slow("k", rerun).await;
        process.faulty.crash();
        slow.caller.abort();
        assert_eq!(world.effects.count(), attempt);
        tokio::time::sleep(2 * LEASE).await;
    }
    assert!(matches!(world.charge_with("k", rerun).await, Err(OnceError::Uncertain { .. })));
    assert_eq!(world.effects.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_run_loses_its_lease_and_may_still_complete() {
    let world = World::new();
    let hour = Duration::from_secs(3600);
    let slow = world.start_slow("k", |policy| policy.run_max(hour)).await;
    tokio::time::sleep(hour + 2 * LEASE).await;
    assert_eq!(world.state("k").await, Some(State::Uncertain));
    assert!(slow.answer().await.unwrap().recorded);
    assert_eq!(world.state("k").await, Some(State::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_run_can_check_whether_it_owns_its_record() {
    let world = World::new();
    let rerun = |policy: Policy| policy.on_lapse(OnLapse::Rerun);
    world.faulty.set_plan(Plan::new().always(Op::Renew, DOWN));
    let (began, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let run = {
        let (began, go_on) = (began.clone(), go_on.clone());
        world.hapax.once("charge", "k").on_lapse(OnLapse::Rerun).run(move |cx| async move {
            let at_first = cx.is_lease_doubtful();
            began.notify_one();
            go_on.notified().await;
            let later = cx.is_lease_doubtful();
            Err::<u32, _>(format!("{at_first} {later} {:?}", cx.confirm().await))
        })
    };
    let caller = tokio::spawn(run);
    began.notified().await;
    tokio::time::sleep(2 * LEASE).await;
    world.second().charge_with("k", rerun).await.unwrap();
    world.faulty.set_plan(Plan::new());
    go_on.notify_one();
    let Err(OnceError::Failed(seen)) = caller.await.unwrap() else { panic!("the first attempt fails") };
    assert_eq!(seen, "false true Err(LeaseLost)");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_disconnected_for_a_while_confirms_its_lease() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().at_nth(Op::Renew, 1, DOWN));
    let done = world.hapax.once("charge", "k").run(|cx| async move {
        tokio::time::sleep(LEASE / 3 + Duration::from_secs(1)).await;
        Ok::<_, String>(cx.confirm().await.is_ok() && !cx.is_lease_doubtful())
    });
    assert!(done.await.unwrap().value);
}

/// In real time: every worker of the runtime is blocked for two leases, and the lease is renewed all the same.
#[tokio::test]
async fn handlers_that_block_the_runtime_do_not_lose_their_lease() {
    let store = Arc::new(MemoryStore::new());
    // Long enough that a short pause of the machine does not end it.
    let lease = Duration::from_secs(2);
    let hapax = Hapax::builder(store.clone()).policy(Policy::default().lease(lease)).build();
    let done = hapax
        .once("charge", "k")
        .run(move |cx| async move {
            std::thread::sleep(2 * lease);
            Ok::<_, String>(cx.is_lease_doubtful())
        })
        .await
        .unwrap();
    assert!(!done.value, "renewed on a dedicated thread");
}

#[tokio::test(start_paused = true)]
async fn a_very_short_lease_is_renewed() {
    let world = World::new();
    let short = Duration::from_millis(300);
    let slow = world.start_slow("k", |policy| policy.lease(short)).await;
    for _ in 0..100 {
        tokio::time::sleep(short / 10).await;
        assert_eq!(world.state("k").await, Some(State::InProgress));
    }
    assert!(slow.answer().await.unwrap().recorded);
}

#[tokio::test(start_paused = true)]
async fn failed_renewals_are_retried_several_times_within_one_lease() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Renew, DOWN));
    let slow = world.start_slow("k", |policy| policy).await;
    let before = world.faulty.calls();
    tokio::time::sleep(LEASE - Duration::from_secs(1)).await;
    let tries = world.faulty.calls() - before;
    assert!((4..=10).contains(&tries), "{tries}");
    slow.answer().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_is_not_confirmed_without_the_store() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Renew, DOWN));
    let done =
        world.hapax.once("charge", "k").run(|cx| async move { Ok::<_, String>(cx.confirm().await.is_err()) });
    assert!(done.await.unwrap().value);
}

#[tokio::test(start_paused = true)]
async fn a_run_with_an_uncertain_record_is_not_confirmed_but_may_complete() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().always(Op::Renew, DOWN));
    let (began, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let run = {
        let (began, go_on) = (began.clone(), go_on.clone());
        world.hapax.once("charge", "k").run(move |cx| async move {
            began.notify_one();
            go_on.notified().await;
            Ok::<_, String>(u32::from(cx.confirm().await.is_err() && cx.is_lease_doubtful()))
        })
    };
    let caller = tokio::spawn(run);
    began.notified().await;
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    assert!(matches!(world.second().charge("k").await, Err(OnceError::Uncertain { .. })));
    world.faulty.set_plan(Plan::new());
    go_on.notify_one();
    let late = caller.await.unwrap().unwrap();
    assert_eq!(
        (late.value, late.recorded),
        (1, true),
        "an operator may be settling it, so it is not confirmed"
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_that_released_the_key_do_not_count_as_crashes() {
    let world = World::new();
    let rerun = |policy: Policy| policy.on_lapse(OnLapse::Rerun).attempts_max(2);
    for _ in 0..5 {
        let failed =
            world.hapax.once("charge", "k").run(|_cx| async { Err::<u32, _>("no".to_owned()) }).await;
        assert!(matches!(failed, Err(OnceError::Failed(_))));
    }
    let process = world.second();
    let slow = process.start_slow("k", rerun).await;
    process.faulty.crash();
    slow.caller.abort();
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(world.charge_with("k", rerun).await.unwrap().value, 2, "taken over: it crashed only once");
}

#[tokio::test(start_paused = true)]
async fn unlimited_durations_are_limited_to_the_maximum() {
    let for_ever = |policy: Policy| {
        let max = Duration::MAX;
        let policy = policy.lease(max).retention(max).uncertain_retention(max);
        policy.wait(max).deadline(max).run_max(max)
    };
    let world = World::with(|builder| {
        let builder = builder.policy(for_ever(Policy::default())).store_timeout(Duration::MAX);
        builder.poll(Duration::MAX).sweep(Some(Duration::MAX))
    });
    assert_eq!(world.charge_with("k", for_ever).await.unwrap().value, 1);
    assert!(world.charge_with("k", for_ever).await.unwrap().replayed);
    let slow = world.start_slow("k2", for_ever).await;
    tokio::time::sleep(LEASE).await;
    slow.answer().await.unwrap();
}
