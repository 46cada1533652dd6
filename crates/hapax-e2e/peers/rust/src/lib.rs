//! The orders service that all axum peers wrap, and what they are told by the benchmark.

use std::env;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;

const CREATED: &str = r#"{"id":"ord_1842","item":"book","amount":2,"state":"created"}"#;

#[derive(Deserialize)]
struct Order {
    item: String,
    amount: u32,
    #[serde(default)]
    sleep_ms: u64,
}

/// The URL of the Redis server.
pub fn redis_url() -> String {
    variable("REDIS_URL")
}

/// The folder for records that are kept in files.
pub fn data_folder() -> String {
    variable("DATA_FOLDER")
}

/// How long a claim is valid, for peers that can be told.
pub fn lock() -> Duration {
    Duration::from_millis(variable("LOCK_MS").parse().expect("LOCK_MS is a number"))
}

/// The kind of store: the only argument.
pub fn store() -> String {
    env::args().nth(1).expect("the argument names the store")
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Serves orders on one thread, wrapped by `wrap`, and prints its address.
pub fn serve(wrap: impl AsyncFnOnce(Router) -> Router) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    runtime.block_on(async {
        let executions = Arc::new(AtomicU64::new(0));
        let orders = Router::new().route("/orders", post(create)).with_state(executions.clone());
        let app = wrap(orders).await.route("/executions", get(count).with_state(executions));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        println!("listening {}", listener.local_addr().expect("a listener has an address"));
        let listener = listener.tap_io(|stream| {
            // Without it, small answers wait for acknowledgements.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await.expect("it serves until the process ends");
    });
}

/// Yields once, as a handler with a database does.
async fn create(State(executions): State<Arc<AtomicU64>>, Json(order): Json<Order>) -> impl IntoResponse {
    executions.fetch_add(1, Ordering::Relaxed);
    tokio::task::yield_now().await;
    if order.sleep_ms > 0 {
        tokio::time::sleep(Duration::from_millis(order.sleep_ms)).await;
    }
    assert!(!order.item.is_empty() && order.amount > 0, "an order has an item");
    (StatusCode::CREATED, [(header::CONTENT_TYPE, "application/json")], CREATED)
}

async fn count(State(executions): State<Arc<AtomicU64>>) -> String {
    executions.load(Ordering::Relaxed).to_string()
}
