//! A layer within a layer: one request is one operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use hapax::http::{HttpPolicy, IdempotencyLayer};
use hapax::{Hapax, MemoryStore};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

#[tokio::test]
async fn x_05_an_inner_layer_does_not_take_its_own_request_for_a_duplicate() {
    for policy in [HttpPolicy::default(), HttpPolicy::default().key_pointer("/id".parse().unwrap())] {
        let hapax = Hapax::new(MemoryStore::new());
        let layer = || IdempotencyLayer::new(&hapax).policy(policy.clone());
        let runs = Arc::new(AtomicU32::new(0));
        let handler = {
            let runs = runs.clone();
            move || async move {
                let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                (StatusCode::SERVICE_UNAVAILABLE, [("Idempotency-Outcome", "pin")], run.to_string())
            }
        };
        let router: Router = Router::new().route("/", post(handler).layer(layer())).layer(layer());
        for is_replayed in [false, true] {
            let request = Request::post("/")
                .header("Idempotency-Key", "k")
                .header("Expect", "100-continue")
                .header("Content-Type", "application/json")
                .body(Body::from(r#"{"id": "k"}"#))
                .unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers().contains_key("x-idempotent-replayed"), is_replayed);
            assert_eq!(response.headers().get("Idempotency-Outcome"), None);
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "1");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}
