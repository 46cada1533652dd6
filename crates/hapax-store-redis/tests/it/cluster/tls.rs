//! A cluster with TLS only: every member is reached by its host name and verified against the same authority.

use hapax_core::{Store, StoreErrorKind};
use hapax_store_redis::{Options, RedisStore};
use hapax_testkit::servers::{RedisCluster, RedisServer, certificate};

use super::moving::owner_index;
use super::{key, names};
use crate::fixture::{PATIENCE, RETENTION, acquire, done, finish, replayed};

const PREFIX: &str = "tls:";

fn options(url: &str) -> Options {
    RedisStore::options(url).unwrap().timeout(PATIENCE).check_every(RETENTION).prefix(PREFIX)
}

/// How often a member has sent a redirection.
fn referred(server: &RedisServer) -> u64 {
    let errors = server.command(&["INFO", "errorstats"]);
    let moved = errors.lines().find_map(|line| line.strip_prefix("errorstat_MOVED:count="));
    moved.map_or(0, |count| count.trim().parse().unwrap())
}

#[tokio::test]
async fn members_are_verified_and_redirect_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let (own, own_key) = certificate(dir.path(), "own");
    let (other, _) = certificate(dir.path(), "other");
    let cluster = RedisCluster::start_with_tls(&own, &own_key, &own);
    let url = format!("{}?ca={}", cluster.url(), own.display());
    let store = options(&url).connect().await.unwrap();
    for name in names() {
        finish(&store, &name, &name).await;
    }
    for primary in cluster.primaries() {
        assert_ne!(primary.command(&["KEYS", "tls:*"]), "", "every member has some");
    }

    // The slot has moved when the first call comes, and is migrating when the next one comes.
    let moving = key(PREFIX, "moving");
    let (slot, from) = (cluster.slot_of(&moving), owner_index(&cluster, &moving));
    let to = (from + 1) % 3;
    cluster.move_slot(slot, from, to);
    let before = referred(&cluster.primaries()[from]);
    let lease = acquire(&store, "moving").await;
    assert!(referred(&cluster.primaries()[from]) > before, "the call went to the old owner first");
    assert!(cluster.primaries()[to].command(&["KEYS", &moving]).contains(&moving));
    cluster.begin_move(slot, to, from);
    assert!(cluster.move_keys(slot, to, from, 10));
    store.complete(&lease, &done("done"), RETENTION).await.unwrap();
    cluster.end_move(slot, to, from);
    assert_eq!(replayed(&store, "moving").await, done("done"));
    store.health().await.unwrap();

    let foreign = format!("{}?ca={}", cluster.url(), other.display());
    let plain = cluster.url().replace("rediss+", "redis+");
    for url in [foreign, cluster.url(), plain] {
        let refused = RedisStore::options(&url).unwrap().prefix(PREFIX).connect().await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Unavailable, "{url}: {refused:?}");
    }
}
