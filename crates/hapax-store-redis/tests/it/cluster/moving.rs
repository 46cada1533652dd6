//! Slot migration: step by step, and under load.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hapax_core::{Claim, Fenced, Store};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::RedisCluster;
use tokio::sync::watch;

use super::{key, options, shared};
use crate::fixture::{RETENTION, acquire, ask, done, finish, replayed};

/// The index of the primary that initially owns a key's slot.
pub(super) fn owner_index(cluster: &RedisCluster, key: &str) -> usize {
    let owner = cluster.owner_of(key).port();
    cluster.primaries().iter().position(|primary| primary.port() == owner).unwrap()
}

#[tokio::test]
async fn a_record_is_found_at_every_step_of_a_migration() {
    let cluster = shared();
    for replicas in [0, 1] {
        let prefix = format!("step-{replicas}:");
        let store = options(&cluster, &prefix).replicas(replicas).connect().await.unwrap();
        // Two keys in one slot could only be found by search, so the key itself passes through every state.
        let (slot, from) = {
            let key = key(&prefix, "moving");
            (cluster.slot_of(&key), owner_index(&cluster, &key))
        };
        let to = (from + 1) % 3;
        cluster.begin_move(slot, from, to);
        // The key is absent, so the claim is made on the importing member.
        let lease = acquire(&store, "moving").await;
        assert!(matches!(store.claim(&ask("moving")).await.unwrap(), Claim::Busy { .. }));
        assert_eq!(store.renew(&lease).await.unwrap(), Fenced::Applied);
        cluster.end_move(slot, from, to);
        assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
        // Back again: this time the key exists when the migration begins.
        cluster.begin_move(slot, to, from);
        assert_eq!(replayed(&store, "moving").await, done("done"));
        assert!(cluster.move_keys(slot, to, from, 10));
        assert_eq!(replayed(&store, "moving").await, done("done"));
        assert_eq!(store.release(&lease, None).await.unwrap(), Fenced::Lost, "a script finds it too");
        cluster.end_move(slot, to, from);
        assert_eq!(replayed(&store, "moving").await, done("done"));
        assert_eq!(store.stats().await.unwrap().records(), 1);
    }
}

#[tokio::test]
async fn an_importing_member_without_the_script_gets_its_text() {
    let cluster = shared();
    let store = options(&cluster, "text:").connect().await.unwrap();
    let lease = acquire(&store, "moving").await;
    let key = key("text:", "moving");
    let (slot, from) = (cluster.slot_of(&key), owner_index(&cluster, &key));
    let to = (from + 1) % 3;
    cluster.begin_move(slot, from, to);
    cluster.move_keys(slot, from, to, 10);
    cluster.primaries()[to].command(&["SCRIPT", "FLUSH"]);
    assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    cluster.end_move(slot, from, to);
    cluster.move_slot(slot, to, from);
    assert_eq!(replayed(&store, "moving").await, done("done"));
}

/// Runs the operation `name` until it has an outcome.
async fn operate(store: &RedisStore, name: &str, executed: &AtomicUsize) {
    let ask = ask(name);
    loop {
        match store.claim(&ask).await {
            Ok(Claim::Acquired(lease)) => {
                executed.fetch_add(1, Ordering::Relaxed);
                let mut completed = store.complete(&lease, &done(name), RETENTION).await;
                while let Err(error) = completed {
                    assert!(error.is_transient(), "{error:?}");
                    completed = store.complete(&lease, &done(name), RETENTION).await;
                }
                assert_eq!(completed.unwrap(), Fenced::Applied);
            }
            Ok(Claim::Replay { recorded, .. }) => return assert_eq!(recorded, done(name)),
            Ok(Claim::Busy { .. }) => tokio::task::yield_now().await,
            Ok(other) => panic!("{name}: {other:?}"),
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_run_once_while_their_slots_move() {
    const KEYS: usize = 40;
    const CALLERS: usize = 6;
    let cluster = Arc::new(RedisCluster::start());
    let stores = [
        Arc::new(options(&cluster, "load:").connect().await.unwrap()),
        Arc::new(options(&cluster, "load:").connect().await.unwrap()),
    ];
    let names: Arc<Vec<String>> = Arc::new((0..KEYS).map(|number| format!("load-{number}")).collect());
    let executed: Arc<Vec<AtomicUsize>> = Arc::new(names.iter().map(|_| AtomicUsize::new(0)).collect());
    let (moving, _) = watch::channel(0);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (store, names, executed) = (stores[caller % 2].clone(), names.clone(), executed.clone());
            let mut moving = moving.subscribe();
            tokio::spawn(async move {
                for (number, name) in names.iter().enumerate() {
                    moving.wait_for(|moving| *moving > number).await.unwrap();
                    operate(&store, name, &executed[number]).await;
                    // Earlier operations must still be found, wherever they are now.
                    let earlier = number / 2;
                    operate(&store, &names[earlier], &executed[earlier]).await;
                }
            })
        })
        .collect();
    let (mover, named) = (cluster.clone(), names.clone());
    let moved = tokio::task::spawn_blocking(move || {
        let mut places: HashMap<u16, usize> = HashMap::new();
        for (number, name) in named.iter().enumerate() {
            let key = key("load:", name);
            let slot = mover.slot_of(&key);
            let from = *places.entry(slot).or_insert_with(|| owner_index(&mover, &key));
            let to = (from + 1) % 3;
            mover.begin_move(slot, from, to);
            moving.send_replace(number + 1);
            while mover.move_keys(slot, from, to, 1) {}
            mover.end_move(slot, from, to);
            places.insert(slot, to);
        }
    });
    moved.await.unwrap();
    for caller in callers {
        caller.await.unwrap();
    }
    let executed: Vec<usize> = executed.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert_eq!(executed, [1; KEYS], "each operation runs once");
    for name in names.iter() {
        assert_eq!(replayed(&*stores[0], name).await, done(name));
    }
    finish(&*stores[1], "afterwards", "done").await;
}
