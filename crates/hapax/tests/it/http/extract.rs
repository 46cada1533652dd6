//! The extractors of handlers on axum.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::any;
use hapax::Context;
use hapax::http::IdempotencyKey;
use http::StatusCode;

use super::service::{Service, Setup, Stage};
use super::wire::Ask;

/// Fails at first, so that there is a second attempt.
async fn both(
    State(stage): State<Arc<Stage>>,
    IdempotencyKey(key): IdempotencyKey,
    context: Context,
) -> (StatusCode, String) {
    let status = if stage.run() == 1 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let fence = context.fence();
    assert_eq!(fence.attempt, context.attempt());
    (status, format!("{} {} {}", key.as_str(), fence.attempt, context.effect_key("charge").as_str()))
}

async fn perhaps(key: Option<IdempotencyKey>, context: Option<Context>) -> String {
    let key = key.map(|IdempotencyKey(key)| key.as_str().to_owned());
    format!("{key:?} {:?}", context.map(|context| context.attempt()))
}

async fn serve() -> Service {
    let routes = || {
        Router::new()
            .route("/both", any(both))
            .route("/perhaps", any(perhaps))
            .route("/context", any(|_: Context| async { "run" }))
    };
    Service::start(Setup { routes, ..Setup::default() }).await
}

#[tokio::test]
async fn handlers_get_the_key_the_fence_and_a_stable_effect_key() {
    let service = serve().await;
    let ask = Ask::post("/both").key("order 1");
    let (first, second) = (service.ask(&ask).await, service.ask(&ask).await);
    assert_eq!((first.status, second.status), (503, 200));
    let effect_key = first.text().strip_prefix("order 1 1 ").expect("the first attempt").to_owned();
    assert_eq!(second.text(), format!("order 1 2 {effect_key}"), "the same effect at the second attempt");
    let other = service.ask(&Ask::post("/both").key("order 2")).await;
    assert_ne!(other.text().rsplit(' ').next(), Some(effect_key.as_str()));
}

#[tokio::test]
async fn handlers_can_extract_an_optional_key() {
    let service = serve().await;
    let with_key = service.ask(&Ask::post("/perhaps").key("k")).await;
    assert_eq!(with_key.text(), "Some(\"k\") Some(1)");
    assert_eq!(service.ask(&Ask::post("/perhaps")).await.text(), "None None");
    let uncovered = service.ask(&Ask::new("GET", "/perhaps").key("k")).await;
    assert_eq!(uncovered.text(), "None None", "a method that is not covered has no attempt");
}

#[tokio::test]
async fn handlers_that_need_a_key_refuse_to_run_without_one() {
    let service = serve().await;
    for path in ["/both", "/context"] {
        service.ask(&Ask::post(path)).await.assert_problem(400, "key-missing");
    }
    assert_eq!(service.stage.runs(), 0);
    assert_eq!(service.ask(&Ask::post("/context").key("k")).await.text(), "run");
}
