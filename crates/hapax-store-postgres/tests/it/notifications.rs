//! Notifications: the server notifies watchers, also of changes by another process.

use std::time::Duration;

use hapax_core::{Fenced, Health, Nonce, Reason, Settlement, Store, Verdict};
use hapax_store_postgres::PostgresStore;
use hapax_testkit::servers::{PgBouncer, PostgresServer};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::fixture::{PATIENCE, RETENTION, acquire, connect, done, options};

/// Two stores that share their records.
async fn two(server: &PostgresServer) -> (PostgresStore, PostgresStore) {
    let first = options(&server.url());
    let second = options(&server.url()).schema(first.schema_name());
    (first.connect().await.unwrap(), second.connect().await.unwrap())
}

#[tokio::test]
async fn a_watcher_is_notified_of_a_change_through_another_store() {
    let server = PostgresServer::shared();
    let (owner, waiter) = two(&server).await;
    let lease = acquire(&owner, "waited for").await;
    // The first notification is the mark itself.
    waiter.watch(&lease.id).unwrap().await;
    let notified = tokio::spawn(waiter.watch(&lease.id).unwrap());
    assert_eq!(owner.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    notified.await.unwrap();
}

#[tokio::test]
async fn every_final_write_notifies() {
    let (_server, store) = connect().await;
    for ending in ["release", "abandon", "settle", "delete"] {
        let lease = acquire(&store, ending).await;
        if ending == "settle" || ending == "delete" {
            store.abandon(&lease, Reason::Declared).await.unwrap();
        }
        store.watch(&lease.id).unwrap().await;
        let notification = store.watch(&lease.id).unwrap();
        match ending {
            "release" => drop(store.release(&lease, None).await.unwrap()),
            "abandon" => drop(store.abandon(&lease, Reason::Declared).await.unwrap()),
            "settle" => {
                let (attempt, nonce) = (lease.fence.nonce, Nonce::random());
                let settlement = Settlement::new(attempt, Verdict::NotApplied).with_nonce(nonce);
                store.settle(&lease.id, &settlement).await.unwrap();
            }
            _ => drop(store.delete(&lease.id, lease.fence.nonce).await.unwrap()),
        }
        notification.await;
    }
}

#[tokio::test]
async fn unwatched_records_send_no_notification() {
    let server = PostgresServer::shared();
    let options = options(&server.url());
    let channel = format!("hapax_{}", options.schema_name());
    let store = options.connect().await.unwrap();
    let (other, waited) = (acquire(&store, "other").await, acquire(&store, "waited for").await);
    store.watch(&waited.id).unwrap().await;
    let (client, mut connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                sender.send(notification.payload().to_owned()).unwrap();
            }
        }
    });
    client.batch_execute(&format!("LISTEN {channel}")).await.unwrap();
    for lease in [&other, &waited] {
        store.complete(lease, &done("done"), RETENTION).await.unwrap();
    }
    assert_eq!(received.recv().await.unwrap(), waited.id.to_string(), "the unwatched record sent none");
}

#[tokio::test]
async fn a_broken_connection_wakes_all_watchers_and_reconnects() {
    let server = PostgresServer::start();
    let store = options(&server.url()).connect().await.unwrap();
    let lease = acquire(&store, "waited for").await;
    store.watch(&lease.id).unwrap().await;
    let notification = tokio::spawn(store.watch(&lease.id).unwrap());
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hapax wake-ups'",
    );
    notification.await.unwrap();
    // Marking it again is a notification too.
    store.watch(&lease.id).unwrap().await;
    let notification = tokio::spawn(store.watch(&lease.id).unwrap());
    assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    notification.await.unwrap();
}

#[tokio::test]
async fn notifications_arrive_from_the_servers_own_address_past_a_pooler() {
    let server = PostgresServer::shared();
    let pooler = PgBouncer::start(&server);
    let store = options(&pooler.url()).listen("127.0.0.1", server.port()).connect().await.unwrap();
    let lease = acquire(&store, "waited for").await;
    store.watch(&lease.id).unwrap().await;
    let notification = tokio::spawn(store.watch(&lease.id).unwrap());
    store.complete(&lease, &done("done"), RETENTION).await.unwrap();
    notification.await.unwrap();
}

#[tokio::test]
async fn a_pooler_that_forwards_no_notifications_is_detected() {
    let server = PostgresServer::shared();
    let pooler = PgBouncer::start(&server);
    // The listener waits this long for its test notification; connecting and creating the tables take far less.
    let store = options(&pooler.url()).timeout(Duration::from_secs(5)).connect().await.unwrap();
    let watching = store.watch(&acquire(&store, "waited for").await.id).unwrap();
    let is_told =
        |health: &Health| health.warnings.iter().any(|warning| warning.contains("listen=HOST:PORT"));
    let found_out = async { while !store.health().await.is_ok_and(|health| is_told(&health)) {} };
    timeout(PATIENCE, found_out).await.unwrap();
    drop(watching);
}
