//! The recorded reasons of uncertain records.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use hapax::core::{Query, Reason, State as RecordState, Status, Store};
use hapax::http::{HttpPolicy, IdempotencyLayer, Outcome};
use hapax::{Hapax, MemoryStore};
use http::{Request, StatusCode};
use http_body_util::Full;
use std::sync::Arc;
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::service::{Service, Setup, Stage, in_parts};
use super::wire::Ask;

fn broken(stage: Arc<Stage>) -> Body {
    stage.go();
    in_parts(stage, vec![Ok("half"), Err(std::io::Error::other("a planned break"))])
}

fn routes() -> Router<Arc<Stage>> {
    let with = |extension: Outcome| move || async move { (axum::Extension(extension), "done") };
    Router::new()
        .route(
            "/truncated",
            any(|State(stage): State<Arc<Stage>>| async move { Response::new(broken(stage)) }),
        )
        .route("/answered", any(|| async { StatusCode::GATEWAY_TIMEOUT }))
        .route("/declared", any(with(Outcome::Uncertain)))
        .route("/declared-in-a-field", any(|| async { ([("idempotency-outcome", "uncertain")], "done") }))
        .route(
            "/reset",
            any(|| async {
                let mut response = StatusCode::BAD_GATEWAY.into_response();
                response.extensions_mut().insert(Outcome::Uncertain);
                response.extensions_mut().insert(Reason::Reset);
                response
            }),
        )
}

#[tokio::test]
async fn x_07_the_recorded_reason_is_the_cause() {
    let gateway: hapax::http::StatusSet = "504".parse().unwrap();
    for (path, reason) in [
        ("/truncated", Reason::Truncated),
        ("/answered", Reason::Answered),
        ("/declared", Reason::Declared),
        ("/declared-in-a-field", Reason::Declared),
        ("/reset", Reason::Reset),
        ("/panics", Reason::Panicked),
    ] {
        let policy = HttpPolicy::default().outcome(gateway, Outcome::Uncertain);
        let service = Service::start(Setup { policy, routes, ..Setup::default() }).await;
        service.ask(&Ask::post(path).key("k")).await;
        assert_eq!(service.reasons().await, [reason], "{path}");
    }
}

#[tokio::test]
async fn x_07_a_failed_service_is_recorded_as_no_answer() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let fails = service_fn(async |_| Err::<http::Response<Full<bytes::Bytes>>, _>("a planned failure"));
    let service = IdempotencyLayer::new(Hapax::builder(store.clone()).build()).layer(fails);
    let request = Request::post("/").header("idempotency-key", "k").body(Full::<bytes::Bytes>::default());
    assert!(service.oneshot(request.unwrap()).await.is_err());
    let page = store.list(&Query::default()).await.unwrap();
    assert_eq!(page.records[0].state_at(page.now), RecordState::Uncertain);
    assert_eq!(page.records[0].status, Status::Uncertain { reason: Reason::NoAnswer });
}
