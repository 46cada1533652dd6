//! Generation marks in a cluster: every shard has one, it moves with its slot, and a loss on any shard is detected.

use std::time::Duration;

use hapax_core::{Store, StoreErrorKind};
use hapax_store_redis::{OpenError, RedisStore};
use hapax_testkit::servers::{RedisCluster, RedisServer};

use super::{key, names, options};
use crate::fixture::{acquire, finish};

/// The interval of checks in these tests.
const OFTEN: Duration = Duration::from_millis(10);

/// The marks under a prefix on a server.
fn marks(server: &RedisServer, prefix: &str) -> Vec<String> {
    let keys = server.command(&["KEYS", &format!("{prefix}generation*")]);
    keys.lines().filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

async fn connect(cluster: &RedisCluster, prefix: &str) -> RedisStore {
    options(cluster, prefix).check_every(OFTEN).connect().await.unwrap()
}

/// Waits until the store has stopped.
async fn stopped(store: &RedisStore) {
    loop {
        match store.health().await {
            Err(error) if error.kind() == StoreErrorKind::Stopped => return,
            _ => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn a_mark_that_does_not_move_with_its_slot_is_a_loss() {
    let cluster = RedisCluster::start();
    let store = connect(&cluster, "mark:").await;
    let primaries = cluster.primaries();
    let at_first: Vec<Vec<String>> = primaries.iter().map(|primary| marks(primary, "mark:")).collect();
    assert!(at_first.iter().all(|marks| marks.len() == 1), "{at_first:?}");

    // A slot that moves with its keys takes its mark along: no loss.
    let mark = &at_first[0][0];
    let slot = cluster.slot_of(mark);
    cluster.move_slot(slot, 0, 1);
    let pulse = || -> i64 { primaries[1].command(&["HGET", mark, "pulse"]).parse().unwrap() };
    let when_moved = pulse();
    while pulse() == when_moved {
        tokio::task::yield_now().await;
    }
    // The shard that it left gets a new mark.
    while marks(&primaries[0], "mark:").is_empty() {
        tokio::task::yield_now().await;
    }
    for name in names() {
        finish(&store, &name, &name).await;
    }

    // A slot that arrives without its keys is a loss.
    cluster.begin_move(slot, 1, 2);
    primaries[1].command(&["DEL", mark]);
    cluster.end_move(slot, 1, 2);
    stopped(&store).await;
    let error = store.claim(&hapax_testkit::operations::ask("anything")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Stopped);
}

#[tokio::test]
async fn a_defect_of_any_shard_is_detected() {
    let cluster = RedisCluster::start();
    for (number, primary) in cluster.primaries().iter().enumerate() {
        let prefix = format!("flush-{number}:");
        let store = connect(&cluster, &prefix).await;
        for name in names() {
            acquire(&store, &name).await;
        }
        primary.command(&["FLUSHALL"]);
        stopped(&store).await;
    }
    for primary in cluster.primaries() {
        primary.command(&["CONFIG", "SET", "maxmemory", "64mb"]);
        primary.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
        let error = options(&cluster, "evicts:").connect().await.unwrap_err();
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
        assert!(matches!(source, Some(OpenError::Evicts { .. })), "{error:?}");
        primary.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    }
    let store = connect(&cluster, "kept:").await;
    finish(&store, "kept", "done").await;
    // A shard that comes back empty is reconnected and detected. No replica can take over meanwhile.
    let owner = cluster.owner_of(&key("kept:", "kept"));
    let at = cluster.primaries().iter().position(|primary| std::ptr::eq(primary, owner)).unwrap();
    cluster.replicas()[at].kill();
    owner.kill();
    owner.restart();
    stopped(&store).await;
}
