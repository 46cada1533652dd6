//! The handler of the function: it creates an order once, under Lambda and under any other server.
//!
//! The records are in a directory, named by `ORDERS_DATA` or `hapax-data`. In Lambda each running instance of a
//! function has its own directory, so this fits a function limited to one instance; several instances need a shared
//! store.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use hapax::Hapax;
use hapax::http::{HttpPolicy, IdempotencyLayer, KeyMode};
use hapax_store_file::FileStore;
use serde_json::{Value, json};

static CREATED: AtomicU32 = AtomicU32::new(0);

async fn create(Json(order): Json<Value>) -> (StatusCode, Json<Value>) {
    let number = CREATED.fetch_add(1, Ordering::SeqCst) + 1;
    (StatusCode::CREATED, Json(json!({ "number": number, "item": order["item"] })))
}

pub(crate) fn app() -> Result<Router, lambda_http::Error> {
    let folder = std::env::var_os("ORDERS_DATA").map_or_else(|| PathBuf::from("hapax-data"), PathBuf::from);
    let hapax = Hapax::new(FileStore::open(folder)?);
    // Lambda runs nothing after the response. The record is complete before the response is returned.
    let idempotency = IdempotencyLayer::new(&hapax).policy(HttpPolicy::default().key(KeyMode::Required));
    Ok(Router::new().route("/orders", post(create)).layer(idempotency))
}
