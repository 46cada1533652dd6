//! The promise for each server configuration, and the servers that are refused.

use std::time::Duration;

use hapax_core::{Claim, Fenced, Promise, Store, StoreErrorKind};
use hapax_store_redis::{OpenError, RedisStore};
use hapax_testkit::servers::{Aof, RedisOptions, RedisServer};

use crate::fixture::{RETENTION, acquire, ask, connect, done, finish, options, replayed};

const MEMORY: u64 = 64 << 20;

fn refusal(error: &hapax_core::StoreError) -> &OpenError {
    std::error::Error::source(error).and_then(|source| source.downcast_ref()).unwrap()
}

#[tokio::test]
async fn the_promise_follows_from_the_settings() {
    let table: [(RedisOptions, Promise, &str); 4] = [
        (RedisServer::options(), Promise::BestEffort, "appendonly is off"),
        (RedisServer::options().aof(Aof::EverySecond), Promise::BestEffort, "everysec"),
        (RedisServer::options().aof(Aof::Always), Promise::AtMostOnce, "maxmemory is not set"),
        (
            RedisServer::options().aof(Aof::Always).memory(0, "allkeys-lru"),
            Promise::AtMostOnce,
            "would be evicted",
        ),
    ];
    for (options, promise, warning) in table {
        let server = options.start();
        let health = connect(&server).await.health().await.unwrap();
        assert_eq!((health.store, health.promise), ("redis", promise), "{:?}", health.warnings);
        assert!(
            health.warnings.iter().any(|warning_text| warning_text.contains(warning)),
            "{:?}",
            health.warnings
        );
    }
}

#[tokio::test]
async fn the_promise_changes_with_the_setting() {
    let server = RedisServer::options().aof(Aof::Always).memory(MEMORY, "noeviction").start();
    let store = connect(&server).await;
    let health = store.health().await.unwrap();
    assert_eq!((health.promise, health.warnings), (Promise::AtMostOnce, vec![]));
    server.command(&["CONFIG", "SET", "appendfsync", "no"]);
    assert_eq!(store.health().await.unwrap().promise, Promise::BestEffort);
}

#[tokio::test]
async fn a_server_that_evicts_is_refused_unless_that_is_accepted() {
    let server = RedisServer::options().aof(Aof::Always).memory(MEMORY, "volatile-lru").start();
    let error = options(&server).connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    assert!(matches!(refusal(&error), OpenError::Evicts { policy } if policy == "volatile-lru"));

    let url = format!("{}?evict=accept", server.url());
    let health = RedisStore::connect(&url).await.unwrap().health().await.unwrap();
    assert_eq!(health.promise, Promise::BestEffort);
}

#[tokio::test]
async fn a_policy_that_changes_later_makes_the_store_unhealthy() {
    let server = RedisServer::options().memory(MEMORY, "noeviction").start();
    let store = connect(&server).await;
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Incompatible);
}

/// Claims new keys until one is refused.
async fn refused(store: &RedisStore) -> hapax_core::StoreError {
    for number in 0.. {
        if let Err(error) = store.claim(&ask(&format!("new {number}"))).await {
            return error;
        }
    }
    unreachable!("numbers do not end")
}

#[tokio::test]
async fn a_policy_that_changes_later_stops_new_claims_at_the_next_check() {
    let server = RedisServer::options().memory(MEMORY, "noeviction").start();
    let store = options(&server).check_every(Duration::from_millis(10)).connect().await.unwrap();
    finish(&store, "finished", "finished").await;
    let lease = acquire(&store, "open").await;
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let error = refused(&store).await;
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    assert!(matches!(refusal(&error), OpenError::Evicts { policy } if policy == "allkeys-lru"));

    // Existing records can be read and finished. A broken connection does not change that.
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    while store.get(&lease.id).await.is_err() {}
    refused(&store).await;
    assert_eq!(replayed(&store, "finished").await, done("finished"));
    assert!(matches!(store.claim(&ask("open")).await.unwrap(), Claim::Busy { .. }));
    assert_eq!(store.complete(&lease, &done("late"), RETENTION).await.unwrap(), Fenced::Applied);

    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    while store.claim(&ask("taken again")).await.is_err() {}
}

#[tokio::test]
async fn a_replica_and_an_unnamed_cluster_member_are_refused() {
    let primary = RedisServer::start();
    let replica = RedisServer::options().replica_of(&primary).start();
    let error = options(&replica).connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(matches!(refusal(&error), OpenError::Replica));

    let member = RedisServer::options().argument("--cluster-enabled", "yes").start();
    let error = options(&member).connect().await.unwrap_err();
    assert!(matches!(refusal(&error), OpenError::Cluster));

    let url = primary.url().replace("redis://", "redis+cluster://");
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    assert!(matches!(refusal(&error), OpenError::NotCluster));
}

#[tokio::test]
async fn a_store_that_must_exist_is_not_created() {
    let server = RedisServer::start();
    let error = options(&server).existing().connect().await.unwrap_err();
    assert!(matches!(refusal(&error), OpenError::Missing { prefix } if prefix == "hapax:"));
    assert_eq!(server.command(&["DBSIZE"]), "0", "looking leaves nothing behind");
    connect(&server).await;
    options(&server).existing().connect().await.unwrap();
}

#[tokio::test]
async fn a_password_is_needed_and_never_shown() {
    let server = RedisServer::options().argument("--requirepass", "opensesame").start();
    let error = options(&server).connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let url = server.url().replace("redis://", "redis://:opensesame@");
    let store = RedisStore::connect(&url).await.unwrap();
    store.health().await.unwrap();
    assert!(!format!("{store:?} {:?}", RedisStore::options(&url).unwrap()).contains("opensesame"));
}
