//! Writes that wait for replicas: with too few replicas the result is unknown, and the write stands.

use std::time::Duration;

use hapax_core::{Claim, Fenced, Store, StoreErrorKind};
use hapax_testkit::servers::RedisServer;

use crate::fixture::{RETENTION, ask, connect, done, finish, options, replayed};

#[tokio::test]
async fn a_write_waits_for_a_replica() {
    let primary = RedisServer::options().argument("--repl-diskless-sync-delay", "0").start();
    let replica = RedisServer::options().replica_of(&primary).start();
    while !replica.command(&["INFO", "replication"]).contains("master_link_status:up") {}
    let store = options(&primary).replicas(1).connect().await.unwrap();
    finish(&store, "copied", "done").await;
    assert_eq!(replica.command(&["DBSIZE"]), primary.command(&["DBSIZE"]));
    assert!(primary.calls("wait") >= 2);
}

#[tokio::test]
async fn a_write_without_replicas_is_unknown_and_stands() {
    let server = RedisServer::start();
    let plain = connect(&server).await;
    let store = options(&server).timeout(Duration::from_millis(400)).replicas(1).connect().await.unwrap();
    let ask = ask("alone");
    for _ in 0..2 {
        assert_eq!(store.claim(&ask).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    }
    let Claim::Acquired(lease) = plain.claim(&ask).await.unwrap() else { panic!("the claim stands") };
    assert_eq!(lease.fence.attempt, 1);
    for _ in 0..2 {
        let error = store.complete(&lease, &done("done"), RETENTION).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unknown, "also if it was applied before");
    }
    assert_eq!(replayed(&store, "alone").await, done("done"), "a replay writes nothing and does not wait");
    assert_eq!(plain.release(&lease, None).await.unwrap(), Fenced::Lost);
}

/// Each write has its own connection, and each of those is probed: the server may have changed.
#[tokio::test]
async fn a_write_that_waits_detects_lost_records() {
    let server = RedisServer::start();
    let store = options(&server).replicas(1).connect().await.unwrap();
    server.command(&["FLUSHALL"]);
    assert_eq!(store.claim(&ask("again")).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(server.command(&["DBSIZE"]), "0", "nothing was claimed");
}

#[tokio::test]
async fn after_a_timeout_no_old_connection_is_reused() {
    let server = RedisServer::start();
    let store = options(&server).timeout(Duration::from_millis(400)).replicas(1).connect().await.unwrap();
    let connections = || {
        let stats = server.command(&["INFO", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    // This leaves an idle connection.
    assert_eq!(store.claim(&ask("before")).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    server.pause();
    assert_eq!(store.claim(&ask("silent")).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    let refused = store.claim(&ask("not sent")).await.unwrap_err().kind();
    assert_eq!(refused, StoreErrorKind::Unavailable, "there is no connection, so nothing was sent");
    server.resume();
    let before = connections();
    // During the back-off after a failure, calls are refused.
    let mut after = store.claim(&ask("after")).await.unwrap_err().kind();
    while after == StoreErrorKind::Unavailable {
        after = store.claim(&ask("after")).await.unwrap_err().kind();
    }
    assert_eq!(after, StoreErrorKind::Unknown);
    assert!(connections() > before + 1, "the probe itself is one of them");
}
