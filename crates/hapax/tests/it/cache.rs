//! The cache of finished records.

use std::sync::Arc;
use std::time::Duration;

use hapax::core::{Class, Format, Lookup, Reason, Recorded, Settled, StoreErrorKind, Verdict};
use hapax::{Hapax, Keeper, MemoryStore, OnceError};
use hapax_testkit::{Fault, Faulty, Op, Plan, Point, ReferenceStore, TokioClock};

use crate::world::{World, settle_down};

const DOWN: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);
const HOUR: Duration = Duration::from_secs(3600);

/// On a store that is shared with other processes.
fn cached() -> World {
    World::with(|builder| builder.cache(1 << 20))
}

/// On a store with a single owner.
fn owned() -> World {
    let store = Arc::new(ReferenceStore::new(TokioClock::new()));
    World::over(store, |builder| builder.cache(1 << 20))
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_enabled_unless_its_size_is_zero() {
    for (set_to, calls) in [(None, 0), (Some(0), 1)] {
        let faulty = Faulty::new(Arc::new(MemoryStore::with_clock(TokioClock::new())));
        let builder = Hapax::builder(faulty.clone()).keeper(Keeper::SharedRuntime).sweep(None);
        let builder = if let Some(bytes) = set_to { builder.cache(bytes) } else { builder };
        let hapax = builder.build();
        let charge = || hapax.once("charge", "k").run(|_cx| async { Ok::<_, String>(()) });
        charge().await.unwrap();
        faulty.set_plan(Plan::new());
        assert!(charge().await.unwrap().replayed);
        assert_eq!(faulty.calls(), calls, "set to {set_to:?}");
    }
}

/// A second copy would still be replayed for a minute after a deletion.
#[tokio::test(start_paused = true)]
async fn a_store_in_memory_is_not_cached() {
    let builder = Hapax::builder(MemoryStore::with_clock(TokioClock::new()));
    let hapax = builder.keeper(Keeper::SharedRuntime).sweep(None).build();
    let charge = || hapax.once("charge", "k").run(|_cx| async { Ok::<_, String>(()) });
    charge().await.unwrap();
    let Lookup::Found { record, .. } = hapax.get("charge", "k").await.unwrap() else {
        panic!("the record exists")
    };
    hapax.store().delete(&record.key.id, record.fence.nonce).await.unwrap();
    assert!(!charge().await.unwrap().replayed);
}

#[tokio::test(start_paused = true)]
async fn a_finished_record_is_replayed_without_the_store() {
    let world = cached();
    world.charge("k").await.unwrap();
    world.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    let replay = world.charge("k").await.unwrap();
    assert_eq!((replay.value, replay.replayed, world.faulty.calls()), (1, true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_record_of_another_process_is_cached_on_its_first_replay() {
    let world = cached();
    world.second().charge("k").await.unwrap();
    world.faulty.set_plan(Plan::new());
    for _ in 0..3 {
        assert!(world.charge("k").await.unwrap().replayed);
    }
    assert_eq!(world.faulty.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unacknowledged_completion_is_not_cached() {
    let world = cached();
    world.faulty.set_plan(Plan::new().always(Op::Complete, DOWN));
    assert!(!world.charge("k").await.unwrap().recorded);
    assert!(matches!(world.charge("k").await, Err(OnceError::InProgress { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_miss_is_looked_up_in_the_store() {
    let world = cached();
    world.charge("k").await.unwrap();
    world.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    assert!(matches!(world.charge("other").await, Err(OnceError::Store(_))), "never treated as absent");
}

#[tokio::test(start_paused = true)]
async fn another_input_is_a_mismatch_in_the_cache() {
    let world = cached();
    world.charge("k").await.unwrap();
    let other =
        world.hapax.once("charge", "k").input("another").run(|_cx| async { Ok::<u32, String>(0) }).await;
    assert!(matches!(other, Err(OnceError::Mismatch)));
}

#[tokio::test(start_paused = true)]
async fn a_record_is_not_replayed_after_its_retention_or_deletion() {
    let world = cached();
    let brief = Duration::from_secs(5);
    world.charge_with("k", |policy| policy.retention(brief)).await.unwrap();
    tokio::time::advance(brief).await;
    assert_eq!(world.charge("k").await.unwrap().value, 2);
    world.delete("k").await;
    assert_eq!(world.charge("k").await.unwrap().value, 3);
}

#[tokio::test(start_paused = true)]
async fn a_record_deleted_by_another_process_is_replayed_for_a_minute_at_most() {
    let world = cached();
    world.charge("k").await.unwrap();
    world.second().delete("k").await;
    assert!(world.charge("k").await.unwrap().replayed);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(world.charge("k").await.unwrap().value, 2);
}

#[tokio::test(start_paused = true)]
async fn with_a_single_owner_a_record_is_replayed_until_it_expires() {
    let world = owned();
    world.charge_with("k", |policy| policy.retention(HOUR)).await.unwrap();
    world.faulty.set_plan(Plan::new());
    tokio::time::advance(HOUR - Duration::from_secs(1)).await;
    assert!(world.charge("k").await.unwrap().replayed);
    assert_eq!(world.faulty.calls(), 0);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(world.charge("k").await.unwrap().value, 2);
}

#[tokio::test(start_paused = true)]
async fn with_a_single_owner_every_deletion_takes_effect_immediately() {
    let world = owned();
    world.charge("k").await.unwrap();
    world.second().delete("k").await;
    assert_eq!(world.charge("k").await.unwrap().value, 2);
    let Lookup::Found { record, .. } = world.hapax.get("charge", "k").await.unwrap() else {
        panic!("the record exists")
    };
    world.store.delete(&record.key.id, record.fence.nonce).await.unwrap();
    assert_eq!(world.charge("k").await.unwrap().value, 3);
}

/// The store replies with a record that is deleted before the reply arrives.
#[tokio::test(start_paused = true)]
async fn a_replay_in_flight_during_a_deletion_is_not_cached() {
    for world in [cached(), owned()] {
        world.second().charge("k").await.unwrap();
        world.faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, Fault::Stall(Point::After)));
        let asking = tokio::spawn({
            let world = world.clone();
            async move { world.charge("k").await }
        });
        settle_down().await;
        world.delete("k").await;
        world.faulty.resume();
        assert!(asking.await.unwrap().unwrap().replayed);
        assert_eq!(world.charge("k").await.unwrap().value, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_without_a_reply_takes_effect_immediately() {
    let world = cached();
    world.charge("k").await.unwrap();
    let Lookup::Found { record, .. } = world.hapax.get("charge", "k").await.unwrap() else {
        panic!("the record exists")
    };
    world.faulty.set_plan(Plan::new().at_nth(Op::Delete, 1, Fault::AnswerLost));
    assert!(world.hapax.delete(&record).await.is_err());
    assert_eq!(world.charge("k").await.unwrap().value, 2);
}

/// Another process deletes the record and runs the operation again, which is settled here.
#[tokio::test(start_paused = true)]
async fn a_settlement_takes_effect_immediately() {
    let (world, other) = {
        let world = cached();
        (world.clone(), world.second())
    };
    world.charge("k").await.unwrap();
    other.delete("k").await;
    let slow = other.start_slow("k", |policy| policy).await;
    let Lookup::Found { record, .. } = other.hapax.get("charge", "k").await.unwrap() else {
        panic!("the record exists")
    };
    let lease = hapax::core::Lease { id: record.key.id, fence: record.fence, length: crate::world::LEASE };
    world.store.abandon(&lease, Reason::Declared).await.unwrap();
    let recorded = Recorded::new(Class::Success, Format::FUNCTION, "7");
    let verdict = Verdict::Applied { recorded, retention: HOUR };
    assert_eq!(world.settle("k", verdict).await, Settled::Applied);
    assert_eq!(world.charge("k").await.unwrap().value, 7);
    slow.caller.abort();
}
