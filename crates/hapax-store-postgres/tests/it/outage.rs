//! Servers and poolers that are down, hang or come back: an answer in time, no write lost, no restart needed.

use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{Claim, Fenced, Store, StoreErrorKind};
use hapax_store_postgres::PostgresStore;
use hapax_testkit::servers::{PgBouncer, PostgresServer};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::fixture::{RETENTION, acquire, ask, done, finish, options, replayed};

/// The store's timeout for a server that does not reply.
const SHORT: Duration = Duration::from_millis(400);

/// Waits until the store answers again. Each try is bounded by the store's own timeout.
async fn recovered(store: &PostgresStore) {
    while store.health().await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// Waits until the store knows that the server is gone. Writes before that may have been applied.
async fn noticed(store: &PostgresStore) {
    while store.claim(&ask("noticed")).await.unwrap_err().kind() != StoreErrorKind::Unavailable {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_a_killed_server() {
    let server = PostgresServer::options().durable().start();
    let store = options(&server.url()).timeout(SHORT).connect().await.unwrap();
    recovered(&store).await;
    let lease = acquire(&store, "open").await;
    finish(&store, "finished", "done").await;
    server.kill();
    noticed(&store).await;
    for _ in 0..3 {
        assert_eq!(store.claim(&ask("fresh")).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(store.renew(&lease).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
    assert!(store.health().await.is_err());
    server.restart();
    recovered(&store).await;
    assert!(matches!(store.claim(&ask("open")).await.unwrap(), Claim::Busy { .. }));
    assert_eq!(replayed(&store, "finished").await, done("done"));
    assert_eq!(store.complete(&lease, &done("late"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(replayed(&store, "open").await, done("late"));
}

#[tokio::test]
async fn calls_to_a_hung_server_time_out() {
    let server = PostgresServer::start();
    let store = options(&server.url()).timeout(SHORT).connect().await.unwrap();
    let lease = acquire(&store, "open").await;
    server.pause();
    // More than there are connections: those that were never sent are known not to be applied.
    let asks: Vec<_> = (0..20).map(|number| ask(&format!("fresh {number}"))).collect();
    for claim in join_all(asks.iter().map(|ask| store.claim(ask))).await {
        let error = claim.unwrap_err();
        let is_told = matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Unknown);
        assert!(is_told, "{error:?}");
    }
    assert_eq!(store.get(&lease.id).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    server.resume();
    recovered(&store).await;
    assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
}

#[tokio::test]
async fn a_server_without_connections_to_spare_is_unavailable() {
    let server = PostgresServer::options().setting("max_connections", "5").start();
    let first = options(&server.url()).without_wake_ups().pool(1).connect().await.unwrap();
    acquire(&first, "open").await;
    let mut taken = Vec::new();
    while let Ok((client, connection)) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await {
        tokio::spawn(connection);
        taken.push(client);
    }
    let refused = options(&server.url()).timeout(SHORT).connect().await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    acquire(&first, "an open connection still works").await;
    drop(taken);
    while options(&server.url()).connect().await.is_err() {}
}

#[tokio::test]
async fn the_store_reconnects_to_a_restarted_pooler() {
    let server = PostgresServer::start();
    let pooler = PgBouncer::start(&server);
    let store = options(&pooler.url()).timeout(SHORT).connect().await.unwrap();
    let lease = acquire(&store, "open").await;
    pooler.kill();
    noticed(&store).await;
    pooler.restart();
    recovered(&store).await;
    assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(replayed(&store, "open").await, done("done"));
}

#[tokio::test]
async fn a_promoted_synchronous_standby_is_located_and_complete() {
    let pair = PostgresServer::options().setting("synchronous_standby_names", "walreceiver");
    let first = pair.clone().start();
    let second = pair.standby_of(&first).start();
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", first.port(), second.port());
    let url = format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write");
    let store = options(&url).connect().await.unwrap();
    finish(&store, "finished", "done").await;
    let lease = acquire(&store, "open").await;
    first.kill();
    second.promote();
    // Commits of the promoted one wait for a standby as well.
    first.follow(&second);
    recovered(&store).await;
    assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(replayed(&store, "open").await, done("done"));
    assert_eq!(replayed(&store, "finished").await, done("done"));
}

/// A host that is down does not even refuse. Here it is a listener with a full backlog: further connections hang.
#[tokio::test]
async fn an_unresponsive_host_does_not_hide_the_next_one() {
    const TRIES: usize = 10;
    let hole = TcpSocket::new_v4().unwrap();
    hole.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let hole = hole.listen(1).unwrap();
    let address = hole.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(Ok(waiting)) = timeout(SHORT, TcpStream::connect(address)).await {
        queue.push(waiting);
    }
    let server = PostgresServer::shared();
    let url = format!("postgres://postgres@{address},127.0.0.1:{}/postgres?listen=off", server.port());
    let options = options(&url).timeout(10 * SHORT);
    for _ in 0..TRIES {
        if let Ok(store) = options.clone().connect().await {
            acquire(&store, "open").await;
            return;
        }
    }
    panic!("the second host was never reached");
}
