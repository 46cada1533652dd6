//! A server that has lost records: the loss is detected, and nothing runs on it until an operator has restarted the process.

use std::time::Duration;

use hapax_core::{Store, StoreErrorKind};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::{Aof, RedisServer};

use crate::fixture::{acquire, ask, connect, fail_to_save, options};

/// The interval of checks in these tests.
const OFTEN: Duration = Duration::from_millis(10);

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
async fn a_flushed_server_is_detected_while_connected() {
    let server = RedisServer::start();
    let store = options(&server).check_every(OFTEN).connect().await.unwrap();
    let lease = acquire(&store, "lost").await;
    server.command(&["FLUSHALL"]);
    stopped(&store).await;
    assert_eq!(store.claim(&ask("lost")).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.renew(&lease).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    // A new process accepts the loss.
    acquire(&connect(&server).await, "lost").await;
}

#[tokio::test]
async fn an_empty_server_is_detected_after_a_restart() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    acquire(&store, "lost").await;
    server.kill();
    server.restart();
    stopped(&store).await;
    assert_eq!(server.command(&["DBSIZE"]), "0", "nothing was claimed on it");
}

#[tokio::test]
async fn a_restored_old_copy_is_detected() {
    let server = RedisServer::options().argument("--dbfilename", "copy.rdb").start();
    let store = connect(&server).await;
    server.command(&["SAVE"]);
    // A write after the copy, and another check.
    acquire(&store, "lost").await;
    connect(&server).await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    while store.health().await.is_err() {}
    server.kill();
    server.restart();
    stopped(&store).await;
}

#[tokio::test]
async fn a_loss_is_detected_on_a_server_that_refuses_writes() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    acquire(&store, "lost").await;
    fail_to_save(&server);
    server.command(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
    server.command(&["FLUSHALL"]);
    server.command(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"]);
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    stopped(&store).await;
}

#[tokio::test]
async fn a_durable_server_is_trusted_after_a_restart() {
    let server = RedisServer::options().aof(Aof::Always).start();
    let store = connect(&server).await;
    server.kill();
    server.restart();
    while store.health().await.is_err() {}
    acquire(&store, "kept").await;
}

#[tokio::test]
async fn a_loss_may_be_accepted_in_advance() {
    let server = RedisServer::start();
    let store = options(&server).check_every(OFTEN).danger_accept_amnesia().connect().await.unwrap();
    let before = server.command(&["HGET", "hapax:generation", "id"]);
    server.command(&["FLUSHALL"]);
    let mut now = String::new();
    while now.is_empty() || now == before {
        tokio::task::yield_now().await;
        now = server.command(&["HGET", "hapax:generation", "id"]);
    }
    acquire(&store, "again").await;
}
