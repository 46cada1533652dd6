//! Wake-ups: whoever waits is told by the server, also when somebody else's process finished.

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
async fn a_waiter_is_told_of_a_change_through_another_store() {
    let server = PostgresServer::shared();
    let (owner, waiter) = two(&server).await;
    let lease = acquire(&owner, "waited for").await;
    // The first news is that it is being listened for.
    waiter.watch(&lease.id).unwrap().await;
    let told = tokio::spawn(waiter.watch(&lease.id).unwrap());
    assert_eq!(owner.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    told.await.unwrap();
}

#[tokio::test]
async fn every_ending_is_told() {
    let (_server, store) = connect().await;
    for ending in ["release", "abandon", "settle", "delete"] {
        let lease = acquire(&store, ending).await;
        if ending == "settle" || ending == "delete" {
            store.abandon(&lease, Reason::Declared).await.unwrap();
        }
        store.watch(&lease.id).unwrap().await;
        let news = store.watch(&lease.id).unwrap();
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
        news.await;
    }
}

#[tokio::test]
async fn nothing_is_told_where_nobody_waits() {
    let server = PostgresServer::shared();
    let options = options(&server.url());
    let channel = format!("hapax_{}", options.schema_name());
    let store = options.connect().await.unwrap();
    let (other, waited) = (acquire(&store, "other").await, acquire(&store, "waited for").await);
    store.watch(&waited.id).unwrap().await;
    let (client, mut connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(news) = message {
                tell.send(news.payload().to_owned()).unwrap();
            }
        }
    });
    client.batch_execute(&format!("LISTEN {channel}")).await.unwrap();
    for lease in [&other, &waited] {
        store.complete(lease, &done("done"), RETENTION).await.unwrap();
    }
    assert_eq!(told.recv().await.unwrap(), waited.id.to_string(), "the first of them made no noise");
}

#[tokio::test]
async fn a_broken_connection_wakes_everybody_and_is_made_again() {
    let server = PostgresServer::start();
    let store = options(&server.url()).connect().await.unwrap();
    let lease = acquire(&store, "waited for").await;
    store.watch(&lease.id).unwrap().await;
    let news = tokio::spawn(store.watch(&lease.id).unwrap());
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hapax wake-ups'",
    );
    news.await.unwrap();
    // It is listened for again, which is news too.
    store.watch(&lease.id).unwrap().await;
    let news = tokio::spawn(store.watch(&lease.id).unwrap());
    assert_eq!(store.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    news.await.unwrap();
}

#[tokio::test]
async fn past_a_pooler_the_server_is_heard_at_its_own_address() {
    let server = PostgresServer::shared();
    let pooler = PgBouncer::start(&server);
    let store = options(&pooler.url()).listen("127.0.0.1", server.port()).connect().await.unwrap();
    let lease = acquire(&store, "waited for").await;
    store.watch(&lease.id).unwrap().await;
    let news = tokio::spawn(store.watch(&lease.id).unwrap());
    store.complete(&lease, &done("done"), RETENTION).await.unwrap();
    news.await.unwrap();
}

#[tokio::test]
async fn a_pooler_that_passes_on_no_news_is_found_out() {
    let server = PostgresServer::shared();
    let pooler = PgBouncer::start(&server);
    // So long the listener waits for its greeting; connecting and making the tables take far less.
    let store = options(&pooler.url()).timeout(Duration::from_secs(5)).connect().await.unwrap();
    let watching = store.watch(&acquire(&store, "waited for").await.id).unwrap();
    let is_told =
        |health: &Health| health.warnings.iter().any(|warning| warning.contains("listen=HOST:PORT"));
    let found_out = async { while !store.health().await.is_ok_and(|health| is_told(&health)) {} };
    timeout(PATIENCE, found_out).await.unwrap();
    drop(watching);
}
