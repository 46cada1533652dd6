//! A cluster: every shard is used and looked at, and calls find their way while slots move and primaries fall.

mod failover;
mod marks;
mod moving;
#[cfg(feature = "tls")]
mod tls;

use std::sync::{Arc, Weak};

use hapax_core::{Promise, Query, Store, StoreErrorKind};
use hapax_store_redis::{OpenError, Options, RedisStore};
use hapax_testkit::servers::{RedisCluster, RedisServer};
use parking_lot::Mutex;

use crate::fixture::{PATIENCE, RETENTION, acquire, ask, done, finish, replayed};

/// How many keys have some on every shard.
const MANY: usize = 24;

/// One cluster for all tests that leave it as it was, each under a prefix of its own.
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

/// The name of a record's key.
fn key(prefix: &str, name: &str) -> String {
    format!("{prefix}{}", hapax_testkit::asking::scoped(name).id)
}

#[tokio::test]
async fn records_are_on_all_shards_and_are_listed_and_counted_together() {
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
async fn nothing_more_than_best_effort_is_promised() {
    let health = options(&shared(), "promise:").connect().await.unwrap().health().await.unwrap();
    assert_eq!((health.store, health.promise), ("redis", Promise::BestEffort));
    assert!(health.warnings.iter().any(|warning| warning.contains("failover")), "{:?}", health.warnings);
}

#[tokio::test]
async fn a_waiter_is_told_whichever_shard_the_record_is_on() {
    let cluster = shared();
    let (owner, waiter) =
        (options(&cluster, "wake:").connect().await, options(&cluster, "wake:").connect().await);
    let (owner, waiter) = (owner.unwrap(), waiter.unwrap());
    for name in names().take(8) {
        let lease = acquire(&owner, &name).await;
        // The first news is that it is being listened to.
        waiter.watch(&lease.id).unwrap().await;
        let told = tokio::spawn(waiter.watch(&lease.id).unwrap());
        owner.complete(&lease, &done(&name), RETENTION).await.unwrap();
        told.await.unwrap();
    }
}

#[tokio::test]
async fn a_write_counts_when_a_replica_of_its_shard_has_it() {
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
async fn full_shards_replay_what_is_finished() {
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
async fn a_store_that_must_exist_is_not_made() {
    let cluster = shared();
    let error = options(&cluster, "absent:").existing().connect().await.unwrap_err();
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
    assert!(matches!(source, Some(OpenError::Missing { .. })), "{error:?}");
    for primary in cluster.primaries() {
        assert_eq!(primary.command(&["KEYS", "absent:*"]), "", "looking leaves nothing behind");
    }
    options(&cluster, "absent:").connect().await.unwrap();
    options(&cluster, "absent:").existing().connect().await.unwrap();
}

#[tokio::test]
async fn a_prefix_that_would_keep_everything_in_one_slot_is_refused() {
    let error = options(&shared(), "{shop}:").connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
}
