//! An AWS Lambda function behind API Gateway that creates orders once.
//!
//! In Lambda, or under `cargo lambda watch --example lambda_order`, it takes events from the runtime. Elsewhere
//! (`cargo run -p hapax --example lambda_order`) it sends two to itself and ends.
//!
//! The records are in a folder, named by `ORDERS_DATA` or `hapax-data`. In Lambda a folder belongs to one running
//! copy of the function at a time, so this fits a function that is held to one; more copies need a store that they
//! share.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use hapax::Hapax;
use hapax::http::{HttpPolicy, IdempotencyLayer, KeyMode};
use hapax_store_file::FileStore;
use serde_json::{Value, json};
use tower::ServiceExt as _;

static CREATED: AtomicU32 = AtomicU32::new(0);

async fn create(Json(order): Json<Value>) -> (StatusCode, Json<Value>) {
    let number = CREATED.fetch_add(1, Ordering::SeqCst) + 1;
    (StatusCode::CREATED, Json(json!({ "number": number, "item": order["item"] })))
}

fn app() -> Result<Router, lambda_http::Error> {
    let folder = std::env::var_os("ORDERS_DATA").map_or_else(|| PathBuf::from("hapax-data"), PathBuf::from);
    let hapax = Hapax::new(FileStore::open(folder)?);
    // Nothing runs in Lambda after the answer. Nothing needs to: the record is complete before there is one.
    let idempotency = IdempotencyLayer::new(&hapax).policy(HttpPolicy::default().key(KeyMode::Required));
    Ok(Router::new().route("/orders", post(create)).layer(idempotency))
}

/// One request, as API Gateway hands it to a function.
fn event(key: &str) -> String {
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": { "content-type": "application/json", "idempotency-key": key },
        "requestContext": {
            "domainName": "api.example.com",
            "http": { "method": "POST", "path": "/orders", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1" },
            "stage": "$default",
            "timeEpoch": 0,
        },
        "body": "{\"item\":\"book\"}",
        "isBase64Encoded": false,
    })
    .to_string()
}

#[tokio::main]
async fn main() -> Result<(), lambda_http::Error> {
    let app = app()?;
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        return lambda_http::run(app).await;
    }

    println!("This is not Lambda. `cargo lambda watch --example lambda_order` is nearly;");
    println!("here, the function is sent the same event twice:");
    let mut bodies = Vec::new();
    for replayed in [false, true] {
        let request = lambda_http::request::from_str(&event("order-1"))?;
        let response = app.clone().oneshot(request).await?;
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers().contains_key("x-idempotent-replayed"), replayed);
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
        println!("  201 Created, replayed: {replayed}: {}", String::from_utf8_lossy(&body));
        bodies.push(body);
    }
    assert_eq!(bodies[0], bodies[1]);
    assert_eq!(CREATED.load(Ordering::SeqCst), 1);
    Ok(())
}
