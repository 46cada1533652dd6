//! The checklist of stateless idempotent services, one test for each line.

use std::sync::Arc;
use std::time::Duration;

use hapax::core::{Lookup, State, Store};
use hapax::{Hapax, MemoryStore, OnceError};
use hapax_testkit::{Op, Point, TokioClock};

use crate::world::{World, settle_down};

#[tokio::test(start_paused = true)]
async fn no_mutable_global_state_between_requests() {
    // Two services in one process, each with its own store, are independent.
    let (one, other) = (World::new(), World::new());
    assert_eq!(one.charge("k").await.unwrap().value, 1);
    let fresh = other.charge("k").await.unwrap();
    assert_eq!((fresh.value, fresh.replayed), (1, false));
}

#[tokio::test(start_paused = true)]
async fn all_state_in_the_store() {
    // The process that responded has exited; another one on the same store returns the same.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(TokioClock::new()));
    let first = World::over(store.clone(), |builder| builder.cache(1 << 20));
    assert_eq!(first.charge("k").await.unwrap().value, 1);
    drop(first);
    let second = World::over(store, |builder| builder);
    let replay = second.charge("k").await.unwrap();
    assert_eq!((replay.value, replay.replayed, second.effects.count()), (1, true, 0));
}

#[tokio::test(start_paused = true)]
async fn keys_identify_operations() {
    let world = World::new();
    for key in ["a", "b", "A", "a b", "a/b"] {
        assert!(!world.charge(key).await.unwrap().replayed, "{key:?} is a separate operation");
        assert!(world.charge(key).await.unwrap().replayed, "{key:?} has a record");
    }
    assert_eq!(world.effects.count(), 5);
}

#[tokio::test(start_paused = true)]
async fn lookup_before_processing() {
    let world = World::new();
    let effects = world.effects.clone();
    let (seen, mut claimed) = tokio::sync::mpsc::unbounded_channel();
    world.faulty.observe(move |step| {
        if step.op == Op::Claim && step.point == Point::After {
            let _ = seen.send(effects.count());
        }
    });
    world.charge("k").await.unwrap();
    assert_eq!(claimed.recv().await, Some(0), "claimed before the effect");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditional_writes_under_concurrency() {
    let hapax = Hapax::new(MemoryStore::new());
    let effects = Arc::new(crate::world::Effects::default());
    for round in 0..200 {
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let (hapax, effects) = (hapax.clone(), effects.clone());
                tokio::spawn(async move {
                    let once = hapax.once("charge", format!("k{round}")).wait(Duration::from_secs(30));
                    once.run(move |_cx| async move { Ok::<_, String>(effects.happen()) }).await.unwrap().value
                })
            })
            .collect();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), round + 1);
        }
    }
    assert_eq!(effects.count(), 200);
}

#[tokio::test(start_paused = true)]
async fn retention_set() {
    let world = World::new();
    world.charge("k").await.unwrap();
    let Lookup::Found { record, now } = world.hapax.get("charge", "k").await.unwrap() else {
        panic!("the record exists")
    };
    assert_eq!(record.expires_at.since(now), Duration::from_secs(24 * 3600));
    tokio::time::advance(Duration::from_secs(25 * 3600)).await;
    assert_eq!(world.store.sweep(1000).await.unwrap().expired, 1);
    assert_eq!(world.hapax.get("charge", "k").await.unwrap(), Lookup::Absent);
}

#[tokio::test(start_paused = true)]
async fn failed_attempts_are_visible() {
    let world = World::new();
    for attempt in 1..=3 {
        let failed =
            world.hapax.once("charge", "k").run(|_cx| async { Err::<u32, _>("no".to_owned()) }).await;
        assert!(matches!(failed, Err(OnceError::Failed(_))));
        let Lookup::Found { record, .. } = world.hapax.get("charge", "k").await.unwrap() else {
            panic!("a tombstone")
        };
        assert_eq!((record.state(), record.fence.attempt), (State::Released, attempt));
        assert!(record.recorded().is_some(), "with its outcome");
    }
}

#[tokio::test(start_paused = true)]
async fn same_input_same_output() {
    let world = World::new();
    let first = world.charge("k").await.unwrap().value;
    for _ in 0..10 {
        assert_eq!(world.charge("k").await.unwrap().value, first);
        tokio::time::advance(Duration::from_secs(600)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_wrapper_applies_to_any_handler_uniformly() {
    // Independent of the handler's argument, result and work, the second call is a replay.
    let hapax = Hapax::new(MemoryStore::new());
    async fn twice<T, F>(hapax: &Hapax, key: &str, handler: impl Fn() -> F) -> (T, T)
    where
        T: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        let mut values = Vec::new();
        for replayed in [false, true] {
            let work = handler();
            let done = hapax.once("any", key).run(move |_cx| work).await.unwrap();
            assert_eq!(done.replayed, replayed, "{key}");
            values.push(done.value);
        }
        (values.remove(0), values.remove(0))
    }
    twice(&hapax, "unit", || async { Ok(()) }).await;
    let (a, b) = twice(&hapax, "text", || async { Ok("ünï".to_owned()) }).await;
    assert_eq!(a, b);
    let (a, b) = twice(&hapax, "tuple", || async { Ok((1_u64, Some(2.5_f64), vec![u128::MAX])) }).await;
    assert_eq!(a, b);
    let (a, b) = twice(&hapax, "slow", || async {
        settle_down().await;
        Ok(serde_json::json!({ "nested": [1, null, { "deep": true }] }))
    })
    .await;
    assert_eq!(a, b);
    let (a, b) = twice(&hapax, "spawned", || async {
        tokio::spawn(async { 5 }).await.map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(a, b);
}
