//! The client against the idempotency layer of this project.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::routing::post;
use hapax::http::IdempotencyLayer;
use hapax::{Hapax, MemoryStore};
use hapax_client::{Error, Key, MismatchFoundBy};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::server::client;

#[derive(Clone, Default)]
struct Orders {
    begun: Arc<Notify>,
    may_end: Arc<Notify>,
    made: Arc<AtomicU32>,
}

/// The URL of a service whose operation ends when it may.
async fn serve(orders: Orders) -> String {
    let order = move |body: String| async move {
        orders.begun.notify_one();
        orders.may_end.notified().await;
        format!("{} {body}", orders.made.fetch_add(1, Ordering::Relaxed))
    };
    let layer = IdempotencyLayer::new(Hapax::new(MemoryStore::new()));
    let app: Router = Router::new().route("/orders", post(order)).layer(layer.for_axum());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/orders", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

#[tokio::test]
async fn c_02_a_lost_answer_is_replayed_and_nothing_runs_twice() {
    let orders = Orders::default();
    let url = serve(orders.clone()).await;
    let key = Key::random();
    let call = || client().post(&url).key(key.clone()).body("book").send();

    // The first caller disappears while the operation runs.
    let first = tokio::spawn(call());
    orders.begun.notified().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());

    // The second gets its result, whether it still runs or has ended.
    let second = tokio::spawn(call());
    orders.may_end.notify_one();
    let response = second.await.unwrap().unwrap();
    assert_eq!(response.bytes().await.unwrap(), "0 book");

    let third = call().await.unwrap();
    assert!(third.replayed());
    assert_eq!((third.attempts(), orders.made.load(Ordering::Relaxed)), (1, 1));
}

#[tokio::test]
async fn c_02_a_key_of_another_request_is_a_mismatch() {
    let orders = Orders::default();
    let url = serve(orders.clone()).await;
    orders.may_end.notify_one();
    let key = Key::random();
    client().post(&url).key(key.clone()).body("book").send().await.unwrap();

    let error = client().post(&url).key(key.clone()).body("pen").send().await.unwrap_err();
    assert!(matches!(error, Error::Mismatch { by: MismatchFoundBy::Server, .. }), "{error}");
    assert_eq!(error.key(), Some(&key));
}
