//! Duplicates that wait.

use std::time::Duration;

use hapax::core::State;
use hapax::{OnceError, Policy};
use hapax_testkit::{Fault, Op, Plan, Point};

use crate::world::{LEASE, World, settle_down};

fn patient(policy: Policy) -> Policy {
    policy.wait(Duration::from_secs(20))
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_running_operation_is_refused_immediately_with_a_retry_delay() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    let Err(OnceError::InProgress { retry_after }) = world.charge("k").await else {
        panic!("the operation is in progress")
    };
    assert!(retry_after > Duration::ZERO && retry_after <= Duration::from_secs(1));
    slow.answer().await.unwrap();
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_woken_by_the_owner_without_time_passing() {
    let world = World::with(|builder| builder.poll(Duration::from_secs(60)));
    let slow = world.start_slow("k", |policy| policy).await;
    let waiter = tokio::spawn({
        let world = world.clone();
        async move { world.charge_with("k", patient).await }
    });
    settle_down().await;
    let before = tokio::time::Instant::now();
    slow.answer().await.unwrap();
    let answer = waiter.await.unwrap().unwrap();
    assert_eq!((answer.value, answer.replayed), (1, true));
    assert_eq!(before.elapsed(), Duration::ZERO, "woken, not polled");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_time_is_up_is_refused_as_in_progress() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    let before = tokio::time::Instant::now();
    assert!(matches!(world.charge_with("k", patient).await, Err(OnceError::InProgress { .. })));
    assert!(before.elapsed() >= Duration::from_secs(20));
    slow.answer().await.unwrap();
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_in_another_process_polls() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    let other = world.second();
    let waiter = tokio::spawn(async move { other.charge_with("k", patient).await });
    settle_down().await;
    slow.answer().await.unwrap();
    assert!(waiter.await.unwrap().unwrap().replayed);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_runs_when_the_first_one_released_the_key() {
    let world = World::new();
    let failing = world.hapax.once("charge", "k").run(|_cx| async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Err::<u32, _>("no".to_owned())
    });
    let failing = tokio::spawn(failing);
    settle_down().await;
    let waiter = world.charge_with("k", patient).await.unwrap();
    assert_eq!((waiter.value, waiter.replayed), (1, false));
    assert!(failing.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_refused_as_uncertain_when_the_owner_dies() {
    let world = World::new();
    let owner = world.second();
    let slow = owner.start_slow("k", |policy| policy).await;
    owner.faulty.crash();
    let answer = world.charge_with("k", |policy| policy.wait(3 * LEASE)).await;
    assert!(matches!(answer, Err(OnceError::Uncertain { .. })));
    slow.caller.abort();
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_completion_between_the_refused_claim_and_the_wait_is_not_missed() {
    let world = World::with(|builder| builder.poll(Duration::from_secs(3600)));
    let slow = world.start_slow("k", |policy| policy).await;
    // The duplicate's claim has been refused, and the reply has not arrived when the owner ends.
    world.faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, Fault::Stall(Point::After)));
    let waiter = tokio::spawn({
        let world = world.clone();
        async move { world.charge_with("k", patient).await }
    });
    settle_down().await;
    slow.answer().await.unwrap();
    world.faulty.resume();
    assert!(waiter.await.unwrap().unwrap().replayed);
}

#[tokio::test(start_paused = true)]
async fn many_waiters_share_one_poller() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    let other = world.second();
    let waiters: Vec<_> = (0..200)
        .map(|_| {
            let other = other.clone();
            tokio::spawn(async move { other.charge_with("k", patient).await })
        })
        .collect();
    settle_down().await;
    let gets = || other.faulty.calls();
    let claims = gets();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let polls = gets() - claims;
    assert!((9..=11).contains(&polls), "one poll per second, independent of the number of waiters: {polls}");
    slow.answer().await.unwrap();
    for waiter in waiters {
        assert!(waiter.await.unwrap().unwrap().replayed);
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_waiters_are_refused_immediately() {
    let world = World::with(|builder| builder.waiters_max(2, 3));
    let slow = world.start_slow("k", |policy| policy).await;
    let slow_too = world.start_slow("k2", |policy| policy).await;
    let wait = |key: &'static str| {
        let world = world.clone();
        tokio::spawn(async move { world.charge_with(key, patient).await })
    };
    let (first, second, third) = (wait("k"), wait("k"), wait("k2"));
    settle_down().await;
    assert!(
        matches!(world.charge_with("k", patient).await, Err(OnceError::InProgress { .. })),
        "two for one key"
    );
    assert!(
        matches!(world.charge_with("k2", patient).await, Err(OnceError::InProgress { .. })),
        "three in total"
    );
    slow.answer().await.unwrap();
    slow_too.answer().await.unwrap();
    for waiter in [first, second, third] {
        assert!(waiter.await.unwrap().unwrap().replayed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_frees_its_slot_and_not_the_key() {
    let world = World::with(|builder| builder.waiters_max(1, 1));
    let slow = world.start_slow("k", |policy| policy).await;
    let waiter = tokio::spawn({
        let world = world.clone();
        async move { world.charge_with("k", patient).await }
    });
    settle_down().await;
    waiter.abort();
    assert!(waiter.await.is_err());
    assert_eq!(world.state("k").await, Some(State::InProgress));
    let next = tokio::spawn({
        let world = world.clone();
        async move { world.charge_with("k", patient).await }
    });
    settle_down().await;
    slow.answer().await.unwrap();
    assert!(next.await.unwrap().unwrap().replayed);
}

#[tokio::test(start_paused = true)]
async fn without_waiters_the_store_is_not_polled() {
    let world = World::with(|builder| builder.waiters_max(0, 10));
    let slow = world.start_slow("k", |policy| policy).await;
    assert!(matches!(world.charge_with("k", patient).await, Err(OnceError::InProgress { .. })));
    let before = world.faulty.calls();
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(world.faulty.calls(), before, "no poller is running");
    slow.answer().await.unwrap();
}
