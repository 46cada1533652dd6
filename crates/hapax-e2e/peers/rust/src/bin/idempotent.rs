//! The service with the layer of the crate `idempotent`.

use std::time::Duration;

use axum::Router;
use hapax_peers::{lock, redis_url, serve, store};
use idempotent::IdempotencyStore;
use idempotent::memory::MemoryStore;
use idempotent::middleware::IdempotencyLayer;
use idempotent::valkey::ValkeyStore;

/// How long a response is kept.
const RETENTION: Duration = Duration::from_secs(24 * 3600);

fn main() {
    serve(async |orders| match store().as_str() {
        "memory" => wrap(orders, MemoryStore::builder().try_build().expect("a store can be built")),
        "redis" => {
            let store = ValkeyStore::with_url(redis_url()).prefix("orders").try_build().await;
            wrap(orders, store.expect("the server can be used as a store"))
        }
        other => panic!("there is no store {other}"),
    });
}

fn wrap<S: IdempotencyStore + Clone + Send + Sync + 'static>(orders: Router, store: S) -> Router {
    orders.layer(IdempotencyLayer::new(store).processing_ttl(lock()).completed_ttl(RETENTION))
}
