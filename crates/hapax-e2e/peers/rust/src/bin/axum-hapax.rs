//! The service with Hapax's layer.

use std::sync::Arc;

use hapax::http::{HttpPolicy, IdempotencyLayer};
use hapax::{Builder, Hapax, MemoryStore, Policy};
use hapax_peers::{data_folder, lock, redis_url, serve, store};
use hapax_store_file::FileStore;
use hapax_store_redis::RedisStore;

fn main() {
    serve(async |orders| {
        let policy = HttpPolicy::default().engine(Policy::default().lease(lock()));
        orders.layer(IdempotencyLayer::new(builder().await.build()).policy(policy).for_axum())
    });
}

async fn builder() -> Builder {
    match store().as_str() {
        "memory" => Hapax::builder(MemoryStore::new()),
        "file" => Hapax::builder(FileStore::open(data_folder()).expect("a store opens in the folder")),
        "redis" => Hapax::builder(redis().await),
        // Every replay is read from the server, as by the other services on Redis.
        "redis-uncached" => Hapax::builder(redis().await).cache(0),
        other => panic!("there is no store {other}"),
    }
}

async fn redis() -> Arc<RedisStore> {
    Arc::new(RedisStore::connect(&redis_url()).await.expect("the server can be used as a store"))
}
