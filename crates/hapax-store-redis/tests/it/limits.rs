//! A server without room, and values that are no records.

use hapax_core::{Claim, Fenced, Lookup, Query, Store, StoreErrorKind};
use hapax_testkit::servers::{RedisOptions, RedisServer};

use crate::fixture::{RETENTION, acquire, ask, connect, done, options, replayed};

/// A server of this version, and one as old as is taken where there is one.
fn versions(set_up: impl Fn(RedisOptions) -> RedisOptions) -> Vec<RedisServer> {
    let old = cfg!(target_arch = "x86_64").then(|| RedisServer::options().old());
    [RedisServer::options()].into_iter().chain(old).map(|options| set_up(options).start()).collect()
}

#[tokio::test]
async fn a_full_server_refuses_new_keys_and_lets_owners_finish() {
    for server in versions(|options| options.memory(64 << 20, "noeviction")) {
        full(&server).await;
    }
}

async fn full(server: &RedisServer) {
    let store = connect(server).await;
    let lease = acquire(&store, "open").await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(store.claim(&ask("fresh")).await.unwrap_err().kind(), StoreErrorKind::Full);
    assert_eq!(store.renew(&lease).await.unwrap(), Fenced::Applied);
    assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(replayed(&store, "open").await, done("done"));
    acquire(&store, "fresh").await;
}

#[tokio::test]
async fn something_else_under_a_key_is_there_and_unreadable() {
    for server in versions(|options| options) {
        something_else(&server).await;
    }
}

async fn something_else(server: &RedisServer) {
    let store = connect(server).await;
    let ask = ask("list");
    let key = format!("hapax:{}", ask.key.id);
    server.command(&["RPUSH", &key, "not", "a", "record"]);
    assert_eq!(store.claim(&ask).await.unwrap(), Claim::Unreadable);
    assert!(matches!(store.get(&ask.key.id).await.unwrap(), Lookup::Unreadable { .. }));
    assert_eq!(store.list(&Query::default()).await.unwrap().unreadable, [ask.key.id]);
    assert_eq!(server.command(&["LLEN", &key]), "3", "nobody wrote over it");
}

#[tokio::test]
async fn a_record_in_the_place_of_another_is_unreadable() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let (first, second) = (ask("first"), ask("second"));
    let lease = acquire(&store, "first").await;
    store.complete(&lease, &done("of the first"), RETENTION).await.unwrap();
    let key = |ask: &hapax_core::ClaimRequest| format!("hapax:{}", ask.key.id);
    server.command(&["COPY", &key(&first), &key(&second)]);
    assert_eq!(store.claim(&second).await.unwrap(), Claim::Unreadable);
    assert!(matches!(store.get(&second.key.id).await.unwrap(), Lookup::Unreadable { .. }));
}

/// A first claim of Redis 7 knows when it was made by that alone.
#[tokio::test]
async fn a_claim_that_lost_its_time_to_live_is_unreadable() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let ask = ask("persisted");
    store.claim(&ask).await.unwrap();
    server.command(&["PERSIST", &format!("hapax:{}", ask.key.id)]);
    assert_eq!(store.claim(&ask).await.unwrap(), Claim::Unreadable);
    assert!(matches!(store.get(&ask.key.id).await.unwrap(), Lookup::Unreadable { .. }));
}

/// A completion that comes again must not take a key without a time to live for one whose time is over.
#[tokio::test]
async fn a_finished_record_that_lost_its_time_to_live_stays_and_gets_it_back() {
    for server in versions(|options| options) {
        persisted_when_finished(&server).await;
    }
}

async fn persisted_when_finished(server: &RedisServer) {
    let store = connect(server).await;
    let lease = acquire(&store, "persisted").await;
    store.complete(&lease, &done("done"), RETENTION).await.unwrap();
    let key = format!("hapax:{}", lease.id);
    server.command(&["PERSIST", &key]);
    assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(replayed(&store, "persisted").await, done("done"));
    assert!(server.command(&["PTTL", &key]).parse::<i64>().unwrap() > 0);
}

#[tokio::test]
async fn stores_with_different_prefixes_know_nothing_of_each_other() {
    let server = RedisServer::start();
    let shop = options(&server).prefix("shop*:").connect().await.unwrap();
    let bank = options(&server).prefix("shop-bank:").connect().await.unwrap();
    acquire(&shop, "same").await;
    assert_eq!(bank.stats().await.unwrap().records(), 0);
    acquire(&bank, "same").await;
    assert_eq!(shop.stats().await.unwrap().records(), 1, "a star in a prefix is a star");
    assert_eq!(bank.list(&Query::default()).await.unwrap().records.len(), 1);
}
