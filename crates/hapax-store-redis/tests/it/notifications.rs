//! Notifications: the server notifies watchers, also of changes by another process.

use hapax_core::{Fenced, Store, Verdict};
use hapax_testkit::servers::RedisServer;

use crate::fixture::{RETENTION, acquire, connect, done};

#[tokio::test]
async fn a_watcher_is_notified_of_a_change_through_another_store() {
    let server = RedisServer::start();
    let (owner, waiter) = (connect(&server).await, connect(&server).await);
    let lease = acquire(&owner, "waited for").await;
    // The first notification is the subscription itself.
    waiter.watch(&lease.id).unwrap().await;
    let notification = waiter.watch(&lease.id).unwrap();
    let notified = tokio::spawn(notification);
    assert_eq!(owner.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    notified.await.unwrap();
}

#[tokio::test]
async fn every_final_write_notifies() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    for ending in ["release", "abandon", "settle", "delete"] {
        let lease = acquire(&store, ending).await;
        if ending == "settle" || ending == "delete" {
            store.abandon(&lease, hapax_core::Reason::Declared).await.unwrap();
        }
        store.watch(&lease.id).unwrap().await;
        let notification = store.watch(&lease.id).unwrap();
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
        notification.await;
    }
}

#[tokio::test]
async fn a_broken_connection_wakes_all_watchers_and_reconnects() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let lease = acquire(&store, "waited for").await;
    store.watch(&lease.id).unwrap().await;
    let notification = tokio::spawn(store.watch(&lease.id).unwrap());
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    notification.await.unwrap();
    // The new subscription is a notification too.
    store.watch(&lease.id).unwrap().await;
    let notification = tokio::spawn(store.watch(&lease.id).unwrap());
    while store.complete(&lease, &done("done"), RETENTION).await.is_err() {}
    notification.await.unwrap();
}
