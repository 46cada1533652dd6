//! The cache of finished records.

use std::time::Duration;

use hapax::OnceError;
use hapax::core::StoreErrorKind;
use hapax_testkit::{Fault, Op, Plan};

use crate::world::World;

const DOWN: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);

fn cached() -> World {
    World::with(|builder| builder.cache(1 << 20))
}

#[tokio::test(start_paused = true)]
async fn a_finished_record_is_answered_without_the_store() {
    let world = cached();
    world.charge("k").await.unwrap();
    world.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    let replay = world.charge("k").await.unwrap();
    assert_eq!((replay.value, replay.replayed, world.faulty.calls()), (1, true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_record_finished_elsewhere_is_kept_from_its_first_replay() {
    let world = cached();
    world.second().charge("k").await.unwrap();
    world.faulty.set_plan(Plan::new());
    for _ in 0..3 {
        assert!(world.charge("k").await.unwrap().replayed);
    }
    assert_eq!(world.faulty.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_durable_is_not_kept() {
    let world = cached();
    world.faulty.set_plan(Plan::new().always(Op::Complete, DOWN));
    assert!(!world.charge("k").await.unwrap().recorded);
    assert!(matches!(world.charge("k").await, Err(OnceError::InProgress { .. })));
}

#[tokio::test(start_paused = true)]
async fn the_store_is_asked_about_what_is_not_kept() {
    let world = cached();
    world.charge("k").await.unwrap();
    world.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    assert!(matches!(world.charge("other").await, Err(OnceError::Store(_))), "never taken for absent");
}

#[tokio::test(start_paused = true)]
async fn another_input_is_a_mismatch_here_too() {
    let world = cached();
    world.charge("k").await.unwrap();
    let other =
        world.hapax.once("charge", "k").input("another").run(|_cx| async { Ok::<u32, String>(0) }).await;
    assert!(matches!(other, Err(OnceError::Mismatch)));
}

#[tokio::test(start_paused = true)]
async fn a_record_is_not_answered_beyond_its_retention_nor_after_it_was_deleted() {
    let world = cached();
    let brief = Duration::from_secs(5);
    world.charge_with("k", |policy| policy.retention(brief)).await.unwrap();
    tokio::time::advance(brief).await;
    assert_eq!(world.charge("k").await.unwrap().value, 2);
    world.delete("k").await;
    assert_eq!(world.charge("k").await.unwrap().value, 3);
}

#[tokio::test(start_paused = true)]
async fn a_record_deleted_by_another_process_is_answered_for_a_minute_at_most() {
    let world = cached();
    world.charge("k").await.unwrap();
    world.second().delete("k").await;
    assert!(world.charge("k").await.unwrap().replayed);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(world.charge("k").await.unwrap().value, 2);
}
