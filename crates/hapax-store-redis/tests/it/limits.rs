//! A full server, and values that are not records.

use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Fenced, Fingerprint, Lease, Lookup, Query, Reason, Store, StoreErrorKind,
};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::{RedisOptions, RedisServer};

use crate::fixture::{RETENTION, acquire, ask, connect, done, fail_to_save, finish, options, replayed};

/// A server of the installed version, and one of the oldest supported version if it is installed.
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

/// Writes until memory is full. The last write is large, so that it is full by a margin.
fn fill(server: &RedisServer) {
    const LARGE: &str = "4194304";
    (0..).find(|number| server.try_command(&["SETRANGE", &format!("filler {number}"), LARGE, "x"]).is_err());
}

/// Checks the answers of retries while the server refuses claims.
async fn answers_from_records(store: &RedisStore, refused: StoreErrorKind) {
    assert_eq!(replayed(store, "finished").await, done("finished"));
    let other = ClaimRequest { fingerprint: Fingerprint::from_parts(1, [7; 32]), ..ask("finished") };
    assert_eq!(store.claim(&other).await.unwrap(), Claim::Mismatch);
    assert!(matches!(store.claim(&ask("open")).await.unwrap(), Claim::Busy { .. }));
    assert!(matches!(store.claim(&ask("lost")).await.unwrap(), Claim::Uncertain { .. }));
    let lapsed = loop {
        match store.claim(&ask("lapsing")).await.unwrap() {
            Claim::Busy { .. } => tokio::task::yield_now().await,
            answer => break answer,
        }
    };
    assert!(matches!(lapsed, Claim::Uncertain { .. }), "{lapsed:?}");
    assert_eq!(store.claim(&ask("list")).await.unwrap(), Claim::Unreadable);
    for absent in ["fresh", "released"] {
        assert_eq!(store.claim(&ask(absent)).await.unwrap_err().kind(), refused, "{absent}");
    }
}

/// Creates one record of each kind; returns the lease of the one that is `open`.
async fn one_of_each(server: &RedisServer, store: &RedisStore) -> Lease {
    finish(store, "finished", "finished").await;
    let lost = acquire(store, "lost").await;
    store.abandon(&lost, Reason::Declared).await.unwrap();
    let released = acquire(store, "released").await;
    store.release(&released, None).await.unwrap();
    store.claim(&ClaimRequest { lease: Duration::from_millis(1), ..ask("lapsing") }).await.unwrap();
    server.command(&["RPUSH", &format!("hapax:{}", ask("list").key.id), "no record"]);
    acquire(store, "open").await
}

#[tokio::test]
async fn a_full_server_replays_finished_records() {
    for server in versions(|options| options.memory(16 << 20, "noeviction")) {
        let store = connect(&server).await;
        let lease = one_of_each(&server, &store).await;
        fill(&server);
        answers_from_records(&store, StoreErrorKind::Full).await;
        // The same for a process that starts now.
        answers_from_records(&connect(&server).await, StoreErrorKind::Full).await;
        assert_eq!(store.complete(&lease, &done("late"), RETENTION).await.unwrap(), Fenced::Applied);
        assert_eq!(replayed(&store, "open").await, done("late"));
    }
}

/// Redis refuses writes if it could not save them to disk (`MISCONF`), and goes on reading.
#[tokio::test]
async fn a_server_with_a_full_disk_replays_finished_records() {
    for server in versions(|options| options) {
        let store = options(&server).check_every(Duration::from_millis(10)).connect().await.unwrap();
        one_of_each(&server, &store).await;
        fail_to_save(&server);
        answers_from_records(&store, StoreErrorKind::Unavailable).await;
        // Checks and new connections of a process that knows the server do not need to write.
        let checks = server.calls("hmget");
        while server.calls("hmget") < checks + 2 {
            tokio::task::yield_now().await;
        }
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        while store.health().await.is_err() {
            tokio::task::yield_now().await;
        }
        answers_from_records(&store, StoreErrorKind::Unavailable).await;
        server.command(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
        acquire(&store, "fresh").await;
    }
}

#[tokio::test]
async fn another_data_type_under_a_key_is_unreadable() {
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
    assert_eq!(server.command(&["LLEN", &key]), "3", "the value is unchanged");
}

#[tokio::test]
async fn a_record_under_another_records_key_is_unreadable() {
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

/// The times of a first claim on Redis 7 are derived from its expiry.
#[tokio::test]
async fn a_claim_without_a_time_to_live_is_unreadable() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let ask = ask("persisted");
    store.claim(&ask).await.unwrap();
    server.command(&["PERSIST", &format!("hapax:{}", ask.key.id)]);
    assert_eq!(store.claim(&ask).await.unwrap(), Claim::Unreadable);
    assert!(matches!(store.get(&ask.key.id).await.unwrap(), Lookup::Unreadable { .. }));
}

/// A repeated completion must not treat a key without a time to live as expired.
#[tokio::test]
async fn a_finished_record_without_a_time_to_live_stays_and_regains_it() {
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
async fn stores_with_different_prefixes_share_nothing() {
    let server = RedisServer::start();
    let shop = options(&server).prefix("shop*:").connect().await.unwrap();
    let bank = options(&server).prefix("shop-bank:").connect().await.unwrap();
    acquire(&shop, "same").await;
    assert_eq!(bank.stats().await.unwrap().records(), 0);
    acquire(&bank, "same").await;
    assert_eq!(shop.stats().await.unwrap().records(), 1, "a star in a prefix is literal");
    assert_eq!(bank.list(&Query::default()).await.unwrap().records.len(), 1);
}
