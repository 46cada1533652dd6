//! A payments service whose requests are safe to retry, and a client that retries them.
//!
//! `cargo run -p hapax --example axum_payments` runs both and ends. With `-- --serve 127.0.0.1:3000` it keeps serving:
//! a shop is at `/`, and `curl` works as well.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

mod client;
mod provider;

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::{get, post};
use axum::{Json, Router};
use hapax::http::{HttpPolicy, IdempotencyKey, IdempotencyLayer, KeyMode, Principal};
use hapax::{Context, Hapax, MemoryStore};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use provider::Provider;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Deserialize, Serialize)]
struct Order {
    item: String,
    amount: u32,
    card: String,
}

/// Runs once for each key, however often the request is sent.
async fn pay(
    State(provider): State<Arc<Provider>>,
    IdempotencyKey(key): IdempotencyKey,
    context: Context,
    Json(order): Json<Order>,
) -> (StatusCode, Json<Value>) {
    println!("    (server) {}: attempt {} under key {}", order.item, context.attempt(), key.as_str());

    // The provider has idempotency keys as well. This one is the same in every run of this payment, so that the
    // provider recognises a repetition.
    match provider.charge(context.effect_key("charge").as_str(), &order).await {
        Ok(charge) => (StatusCode::CREATED, Json(json!({ "charge": charge, "paid": order.amount }))),
        Err(declined) => (StatusCode::PAYMENT_REQUIRED, Json(json!({ "declined": declined }))),
    }
}

fn app(provider: Arc<Provider>) -> Result<Router, BoxError> {
    let hapax = Hapax::new(MemoryStore::new());
    let idempotency = IdempotencyLayer::new(&hapax)
        // The shop has no accounts. Without this, a request of a browser with cookies of another server on 127.0.0.1 is
        // refused.
        .route("/payments", HttpPolicy::default().key(KeyMode::Required).principal(Principal::None));
    Ok(Router::new()
        .route("/", get(|| async { Html(include_str!("shop.html")) }))
        .route("/payments", post(pay))
        .with_state(provider)
        .layer(idempotency.for_axum()))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let provider = Arc::new(Provider::default());
    let app = app(provider.clone())?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            tokio::spawn(axum::serve(listener, app).into_future());
            client::show(address, &provider).await
        }
        ["--serve", address] => {
            let listener = TcpListener::bind(address).await?;
            println!("the shop is at http://{}/", listener.local_addr()?);
            Ok(axum::serve(listener, app).await?)
        }
        _ => Err("the only argument is `--serve ADDRESS`".into()),
    }
}
