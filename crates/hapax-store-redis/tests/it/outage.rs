//! Servers that are down, hang or come back: an answer in time, no promised write lost, no restart needed.

use std::collections::HashSet;
use std::error::Error as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hapax_core::{Claim, Fenced, Store, StoreErrorKind};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::{Aof, RedisServer};

use crate::fixture::{RETENTION, acquire, ask, connect, done, finish, options, replayed};

/// The store's timeout for a server that does not reply.
const SHORT: Duration = Duration::from_millis(200);

/// Waits until the store answers again. Each try is bounded by the store's own timeout.
async fn recovered(store: &RedisStore) {
    while store.health().await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_a_killed_server() {
    let server = RedisServer::options().aof(Aof::Always).start();
    let store = connect(&server).await;
    let lease = acquire(&store, "open").await;
    finish(&store, "finished", "done").await;
    server.kill();
    server.restart();
    recovered(&store).await;
    assert!(matches!(store.claim(&ask("open")).await.unwrap(), Claim::Busy { .. }));
    assert_eq!(replayed(&store, "finished").await, done("done"));
    assert_eq!(store.complete(&lease, &done("late"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(replayed(&store, "open").await, done("late"));
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let lease = acquire(&store, "open").await;
    server.kill();
    // The first call may have been in flight when the connection broke.
    store.get(&lease.id).await.unwrap_err();
    for _ in 0..3 {
        assert_eq!(store.claim(&ask("fresh")).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(store.renew(&lease).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(store.get(&lease.id).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
    assert_eq!(options(&server).connect().await.unwrap_err().kind(), StoreErrorKind::Unavailable);
}

/// A starting or overloaded server recovers sooner if it is not probed for every call.
#[tokio::test]
async fn connecting_backs_off_from_an_unreachable_server() {
    const CALLS: u32 = 400;
    let server = RedisServer::start();
    let store = connect(&server).await;
    let port = server.port();
    server.kill();
    // Accepts connections and closes them.
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let visits = Arc::new(AtomicU32::new(0));
    let counted = visits.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    // This call may have been in flight when the connection broke.
    store.claim(&ask("fresh")).await.unwrap_err();
    let mut reasons = HashSet::new();
    for _ in 0..CALLS {
        let error = store.claim(&ask("fresh")).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
        reasons.insert(error.source().unwrap().to_string());
    }
    let visits = visits.load(Ordering::Relaxed);
    assert!((1..CALLS / 2).contains(&visits), "{visits} visits");
    // Calls during the back-off get the same reason.
    assert!(reasons.len() as u32 <= visits, "{reasons:?}");
}

/// Later calls have less time left, and must not spend it on attempts of their own.
#[tokio::test]
async fn connecting_backs_off_from_a_server_that_accepts_and_hangs() {
    const CALLS: u32 = 200;
    let server = RedisServer::start();
    let store = Arc::new(options(&server).timeout(SHORT).connect().await.unwrap());
    let port = server.port();
    server.kill();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let held = Arc::new(Mutex::new(Vec::new()));
    let holder = held.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            holder.lock().unwrap().push(stream);
        }
    });
    let mut calls = tokio::task::JoinSet::new();
    let mut arrivals = tokio::time::interval(SHORT / 100);
    for number in 0..CALLS {
        arrivals.tick().await;
        let store = store.clone();
        calls.spawn(async move { store.claim(&ask(&format!("call {number}"))).await.is_err() });
    }
    assert!(calls.join_all().await.into_iter().all(|failed| failed));
    let visits = held.lock().unwrap().len() as u32;
    assert!((1..CALLS / 4).contains(&visits), "{visits} visits");
}

#[tokio::test]
async fn a_hung_server_is_disconnected_and_reconnected() {
    let server = RedisServer::start();
    let store = options(&server).timeout(SHORT).connect().await.unwrap();
    server.pause();
    let claim = ask("sent");
    // It was sent, and may be applied when the server resumes.
    assert_eq!(store.claim(&claim).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    // From here on there is no connection to send on.
    assert_eq!(store.claim(&ask("fresh")).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    server.resume();
    recovered(&store).await;
    let mut answer = store.claim(&claim).await;
    while answer.as_ref().is_err_and(hapax_core::StoreError::is_transient) {
        answer = store.claim(&claim).await;
    }
    assert!(matches!(answer.unwrap(), Claim::Acquired(lease) if lease.fence.attempt == 1));
}

#[tokio::test]
async fn a_dead_connection_is_replaced_without_calls() {
    let server = RedisServer::options().aof(Aof::Always).start();
    let store = options(&server).check_every(Duration::from_millis(10)).connect().await.unwrap();
    let connected = |server: &RedisServer| {
        let clients = server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
        clients
            .lines()
            .filter(|client| client.contains("lib-name=redis-rs") || client.contains("cmd=evalsha"))
            .count()
    };
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    while connected(&server) == 0 {
        tokio::task::yield_now().await;
    }
    acquire(&store, "at once").await;
}
