//! A cluster: every shard is used and checked, and calls reach their key while slots move and primaries fail.

mod failover;
mod generations;
mod moving;
#[cfg(feature = "tls")]
mod tls;

use std::sync::{Arc, Weak};

use hapax_core::{Promise, Query, Store, StoreErrorKind};
use hapax_store_redis::{OpenError, Options, RedisStore};
use hapax_testkit::servers::{RedisCluster, RedisServer};
use parking_lot::Mutex;

use crate::fixture::{PATIENCE, RETENTION, acquire, ask, done, finish, replayed};

/// Enough keys for every shard to have some.
const MANY: usize = 24;

/// One cluster for all tests that leave it unchanged, each under its own prefix.
fn shared() -> Arc<RedisCluster> {
    static SHARED: Mutex<Weak<RedisCluster>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock();
    shared.upgrade().unwrap_or_else(|| {
        let cluster = Arc::new(RedisCluster::start());
        *shared = Arc::downgrade(&cluster);
        cluster
    })
}

fn options(cluster: &RedisCluster, prefix: &str) -> Options {
    let options = RedisStore::options(&cluster.url()).unwrap();
    options.timeout(PATIENCE).check_every(RETENTION).prefix(prefix)
}

fn names() -> impl Iterator<Item = String> {
    (0..MANY).map(|number| format!("order {number}").replace(' ', "-"))
}

/// The key of a record.
fn key(prefix: &str, name: &str) -> String {
    format!("{prefix}{}", hapax_testkit::operations::scoped(name).id)
}

#[tokio::test]
async fn records_on_all_shards_are_listed_and_counted_together() {
    let cluster = shared();
    let store = options(&cluster, "spread:").connect().await.unwrap();
    for name in names() {
        finish(&store, &name, &name).await;
    }
    for name in names() {
        assert_eq!(replayed(&store, &name).await, done(&name));
    }
    let records = |server: &RedisServer| {
        let keys = server.command(&["KEYS", "spread:*"]);
        keys.lines().filter(|key| !key.contains("generation")).count()
    };
    let spread: Vec<usize> = cluster.primaries().iter().map(records).collect();
    assert!(spread.iter().all(|records| *records > 0), "{spread:?}");
    assert_eq!((spread.iter().sum::<usize>(), store.stats().await.unwrap().records()), (MANY, MANY as u64));
    let mut query = Query { limit: 10, ..Query::default() };
    let mut listed = 0;
    loop {
        let page = store.list(&query).await.unwrap();
        listed += page.records.len();
        let Some(next) = page.next else { break };
        query.cursor = Some(next);
    }
    assert_eq!(listed, MANY);
}

#[tokio::test]
async fn a_cluster_is_best_effort() {
    let health = options(&shared(), "promise:").connect().await.unwrap().health().await.unwrap();
    assert_eq!((health.store, health.promise), ("redis", Promise::BestEffort));
    assert!(health.warnings.iter().any(|warning| warning.contains("failover")), "{:?}", health.warnings);
}

#[tokio::test]
async fn a_watcher_is_notified_on_every_shard() {
    let cluster = shared();
    let (owner, waiter) =
        (options(&cluster, "wake:").connect().await, options(&cluster, "wake:").connect().await);
    let (owner, waiter) = (owner.unwrap(), waiter.unwrap());
    for name in names().take(8) {
        let lease = acquire(&owner, &name).await;
        // The first notification is the subscription itself.
        waiter.watch(&lease.id).unwrap().await;
        let notified = tokio::spawn(waiter.watch(&lease.id).unwrap());
        owner.complete(&lease, &done(&name), RETENTION).await.unwrap();
        notified.await.unwrap();
    }
}

#[tokio::test]
async fn a_write_waits_for_a_replica_of_its_shard() {
    let cluster = shared();
    let store = options(&cluster, "wait:").replicas(1).connect().await.unwrap();
    for name in names() {
        finish(&store, &name, &name).await;
        let key = key("wait:", &name);
        let at = cluster.primaries().iter().position(|primary| std::ptr::eq(primary, cluster.owner_of(&key)));
        let replica = &cluster.replicas()[at.unwrap()];
        assert!(replica.command(&["KEYS", &key]).contains(&key), "{name}");
    }
    assert!(cluster.primaries().iter().all(|primary| primary.calls("wait") > 0));
}

#[tokio::test]
async fn full_shards_replay_finished_records() {
    let cluster = RedisCluster::start();
    let store = options(&cluster, "full:").connect().await.unwrap();
    for name in names() {
        finish(&store, &name, &name).await;
    }
    for primary in cluster.primaries() {
        primary.command(&["CONFIG", "SET", "maxmemory", "1"]);
    }
    for name in names() {
        assert_eq!(replayed(&store, &name).await, done(&name));
        let fresh = ask(&format!("fresh-{name}"));
        assert_eq!(store.claim(&fresh).await.unwrap_err().kind(), StoreErrorKind::Full);
    }
}

#[tokio::test]
async fn a_store_that_must_exist_is_not_created() {
    let cluster = shared();
    let error = options(&cluster, "absent:").existing().connect().await.unwrap_err();
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
    assert!(matches!(source, Some(OpenError::Missing { .. })), "{error:?}");
    for primary in cluster.primaries() {
        assert_eq!(primary.command(&["KEYS", "absent:*"]), "", "a probe writes nothing");
    }
    options(&cluster, "absent:").connect().await.unwrap();
    options(&cluster, "absent:").existing().connect().await.unwrap();
}

#[tokio::test]
async fn a_prefix_with_a_hash_tag_is_refused() {
    let error = options(&shared(), "{shop}:").connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
}
