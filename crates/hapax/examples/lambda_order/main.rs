//! An AWS Lambda function behind API Gateway that creates orders once.
//!
//! In Lambda, or under `cargo lambda watch --example lambda_order`, it takes events from the runtime. Otherwise (`cargo
//! run -p hapax --example lambda_order`) it sends itself two events and ends.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

mod function;

use axum::http::StatusCode;
use serde_json::json;
use tower::ServiceExt as _;

/// One request, as API Gateway passes it to a function.
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
    let app = function::app()?;
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
    Ok(())
}
