//! Wake-ups: whoever waits is told by the server, also when somebody else's process finished.

use hapax_core::{Fenced, Store, Verdict};
use hapax_testkit::servers::RedisServer;

use crate::fixture::{RETENTION, acquire, connect, done};

#[tokio::test]
async fn a_waiter_is_told_of_a_change_through_another_store() {
    let server = RedisServer::start();
    let (owner, waiter) = (connect(&server).await, connect(&server).await);
    let lease = acquire(&owner, "waited for").await;
    // The first news is that it is being listened to.
    waiter.watch(&lease.id).unwrap().await;
    let news = waiter.watch(&lease.id).unwrap();
    let told = tokio::spawn(news);
    assert_eq!(owner.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    told.await.unwrap();
}

#[tokio::test]
async fn every_ending_is_told() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    for ending in ["release", "abandon", "settle", "delete"] {
        let lease = acquire(&store, ending).await;
        if ending == "settle" || ending == "delete" {
            store.abandon(&lease, hapax_core::Reason::Declared).await.unwrap();
        }
        store.watch(&lease.id).unwrap().await;
        let news = store.watch(&lease.id).unwrap();
        match ending {
            "release" => drop(store.release(&lease, None).await.unwrap()),
            "abandon" => drop(store.abandon(&lease, hapax_core::Reason::Declared).await.unwrap()),
            "settle" => {
                let (attempt, nonce) = (lease.fence.nonce, hapax_core::Nonce::random());
                let settlement = hapax_core::Settlement::new(attempt, Verdict::NotApplied).with_nonce(nonce);
                store.settle(&lease.id, &settlement).await.unwrap();
            }
            _ => drop(store.delete(&lease.id, lease.fence.nonce).await.unwrap()),
        }
        news.await;
    }
}

#[tokio::test]
async fn a_broken_connection_wakes_everybody_and_is_made_again() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let lease = acquire(&store, "waited for").await;
    store.watch(&lease.id).unwrap().await;
    let news = tokio::spawn(store.watch(&lease.id).unwrap());
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    news.await.unwrap();
    // It is listened to again, which is news too.
    store.watch(&lease.id).unwrap().await;
    let news = tokio::spawn(store.watch(&lease.id).unwrap());
    while store.complete(&lease, &done("done"), RETENTION).await.is_err() {}
    news.await.unwrap();
}
