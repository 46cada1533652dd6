//! Many duplicates that wait for one response: how often the handler ran, and how much memory each of them holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use axum::routing::post;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hapax::http::{HttpPolicy, IdempotencyLayer};
use hapax::{Hapax, MemoryStore};
use tokio::sync::Notify;
use tower_service::Service as _;

use super::memory::in_use;

/// Concurrent waiting duplicates.
pub const WAITERS: usize = 1000;
/// The length of their bodies.
const BODY_BYTES: usize = 1024;
/// Longer than the measurement.
const WAIT: Duration = Duration::from_secs(600);

/// What the duplicates cost.
#[derive(Clone, Copy, Debug)]
pub struct Waiters {
    /// Handlers that ran.
    pub executions: u64,
    /// Bytes in use for each duplicate while it waited, its body included.
    pub bytes_each: usize,
}

/// Sends 1,000 duplicates of a running request, measures their memory, and lets the request end.
///
/// # Errors
/// When one of them does not wait, or is not a replay of the first.
pub async fn waiters() -> Result<Waiters> {
    let (go, executions) = (Arc::new(Notify::new()), Arc::new(AtomicU64::new(0)));
    let handler = {
        let (go, executions) = (go.clone(), executions.clone());
        move |_body: Bytes| async move {
            executions.fetch_add(1, Ordering::SeqCst);
            go.notified().await;
            (StatusCode::CREATED, "done")
        }
    };
    let hapax = Hapax::new(MemoryStore::new());
    let layer = IdempotencyLayer::new(&hapax).policy(HttpPolicy::default().wait(WAIT));
    let app = Router::new().route("/orders", post(handler)).layer(layer);

    let mut first = Box::pin(app.clone().call(request()?));
    ensure!(futures_util::poll!(&mut first).is_pending(), "the first request runs");
    let before = in_use();
    let mut waiting = FuturesUnordered::new();
    for _ in 0..WAITERS {
        waiting.push(app.clone().call(request()?));
    }
    ensure!(futures_util::poll!(waiting.next()).is_pending(), "no duplicate is answered before the first");
    let bytes_each = (in_use() - before) / WAITERS;

    go.notify_one();
    let answered = first.await?;
    ensure!(answered.status() == StatusCode::CREATED, "the first got {}", answered.status());
    while let Some(answer) = waiting.next().await {
        let answer = answer?;
        let is_replay = answer.headers().contains_key("x-idempotent-replayed");
        ensure!(answer.status() == StatusCode::CREATED && is_replay, "a duplicate got {}", answer.status());
    }
    Ok(Waiters { executions: executions.load(Ordering::SeqCst), bytes_each })
}

fn request() -> Result<Request<Body>> {
    let request = Request::post("/orders").header("idempotency-key", "\"order-1\"");
    Ok(request.body(Body::from(vec![b'x'; BODY_BYTES]))?)
}
