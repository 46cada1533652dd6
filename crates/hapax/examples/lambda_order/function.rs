//! The function itself: whatever hands it requests, it creates an order once.
//!
//! The records are in a folder, named by `ORDERS_DATA` or `hapax-data`. In Lambda a folder belongs to one running
//! copy of the function at a time, so this fits a function that is held to one; more copies need a store that they
//! share.

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
    // Nothing runs in Lambda after the answer. Nothing needs to: the record is complete before there is one.
    let idempotency = IdempotencyLayer::new(&hapax).policy(HttpPolicy::default().key(KeyMode::Required));
    Ok(Router::new().route("/orders", post(create)).layer(idempotency))
}
