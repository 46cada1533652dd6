//! Cancelled callers, deadlines, and shutdown.

use std::time::Duration;

use hapax::OnceError;
use hapax::core::State;

use crate::world::{World, settle_down};

#[tokio::test(start_paused = true)]
async fn a_cancelled_caller_does_not_stop_the_run_and_the_retry_gets_its_result() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    slow.caller.abort();
    settle_down().await;
    assert_eq!(world.state("k").await, Some(State::InProgress), "a cancelled caller frees nothing");
    slow.finish();
    settle_down().await;
    let retry = world.charge("k").await.unwrap();
    assert_eq!((retry.value, retry.replayed), (1, true));
}

#[tokio::test(start_paused = true)]
async fn a_caller_cancelled_at_any_await_changes_nothing() {
    for polls in 0..40 {
        let world = World::new();
        let mut call = Box::pin(world.charge("k"));
        for _ in 0..polls {
            if futures_util::poll!(call.as_mut()).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(call);
        settle_down().await;
        let retry = world.charge("k").await.unwrap();
        assert_eq!((retry.value, world.effects.count()), (1, 1), "dropped after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait_and_the_run_continues() {
    let world = World::new();
    let minute = Duration::from_secs(60);
    let effects = world.effects.clone();
    let late = world.hapax.once("charge", "k").deadline(minute).run(move |_cx| async move {
        tokio::time::sleep(3 * minute).await;
        Ok::<_, String>(effects.happen())
    });
    assert!(matches!(late.await, Err(OnceError::Deadline { .. })));
    assert!(matches!(world.charge("k").await, Err(OnceError::InProgress { .. })));
    tokio::time::sleep(3 * minute).await;
    assert_eq!(world.charge("k").await.unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn draining_refuses_new_operations_and_waits_for_running_ones() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    let drain = tokio::spawn({
        let hapax = world.hapax.clone();
        async move { hapax.drain(Duration::from_secs(60)).await }
    });
    settle_down().await;
    assert!(matches!(world.charge("other").await, Err(OnceError::Draining)));
    assert!(!drain.is_finished());
    slow.finish();
    assert_eq!(drain.await.unwrap().left, 0);
    assert!(slow.caller.await.unwrap().unwrap().recorded);
    assert_eq!(world.second().charge("k").await.unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn draining_ends_at_its_limit_and_returns_the_number_left() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    assert_eq!(world.hapax.drain(Duration::from_secs(1)).await.left, 1);
    slow.answer().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn draining_does_not_wait_for_duplicates_of_other_processes() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    let minute = Duration::from_secs(60);
    let other = world.second();
    let duplicate = tokio::spawn({
        let other = other.clone();
        async move { other.charge_with("k", |policy| policy.wait(minute)).await }
    });
    settle_down().await;
    assert!(!duplicate.is_finished());
    assert_eq!(other.hapax.drain(Duration::from_secs(1)).await.left, 0);
    slow.answer().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_outcomes_to_be_recorded() {
    use hapax_testkit::{Fault, Op, Plan};
    let world = World::new();
    let down = Fault::ErrorBefore(hapax::core::StoreErrorKind::Unavailable);
    world.faulty.set_plan(Plan::new().always(Op::Complete, down));
    assert!(!world.charge("k").await.unwrap().recorded);
    assert_eq!(world.hapax.drain(Duration::from_secs(5)).await.left, 1);
    world.faulty.set_plan(Plan::new());
    assert_eq!(world.hapax.drain(Duration::from_secs(60)).await.left, 0);
    assert_eq!(world.state("k").await, Some(State::Completed));
}

#[tokio::test(start_paused = true)]
async fn the_sweeper_removes_expired_records() {
    let world = World::with(|builder| builder.sweep(Some(Duration::from_secs(3600))));
    world.charge("k").await.unwrap();
    tokio::time::sleep(Duration::from_secs(20 * 3600)).await;
    assert_eq!(world.state("k").await, Some(State::Completed), "before the end of its retention");
    tokio::time::sleep(Duration::from_secs(10 * 3600)).await;
    assert_eq!(world.state("k").await, None);
}

#[tokio::test(start_paused = true)]
async fn the_sweeper_continues_after_a_lost_reply() {
    use hapax_testkit::{Fault, Op, Plan};
    let world = World::with(|builder| builder.sweep(Some(Duration::from_secs(3600))));
    for n in 0..3000 {
        world
            .charge_with(&format!("k{n}"), |policy| policy.retention(Duration::from_secs(60)))
            .await
            .unwrap();
    }
    world.faulty.set_plan(Plan::new().at_nth(Op::Sweep, 1, Fault::AnswerLost).at_nth(
        Op::Sweep,
        2,
        Fault::AnswerLost,
    ));
    tokio::time::sleep(Duration::from_secs(5000)).await;
    assert_eq!(
        world.store.stats().await.unwrap().records(),
        0,
        "all batches in the first round, not one per hour"
    );
}

/// In real time: a store with a single owner can be opened again as soon as Hapax is dropped.
#[tokio::test]
async fn a_dropped_hapax_has_closed_its_store() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let store = hapax_store_file::FileStore::open(dir.path()).expect("the directory is unlocked");
        let hapax = hapax::Hapax::new(store);
        let done = hapax.once("charge", "k").run(|_cx| async { Ok::<_, String>(7) }).await.unwrap();
        assert_eq!((done.value, done.replayed), (7, round > 0));
        assert_eq!(hapax.drain(Duration::from_secs(5)).await.left, 0);
    }
}
