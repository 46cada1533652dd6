//! Responses that are not recorded: they are streamed while they are produced, and their operation never runs again.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::any;
use hapax::core::{State as RecordState, SystemClock};
use hapax::http::HttpPolicy;
use hapax_testkit::ReferenceStore;

use super::service::{Service, Setup, Stage, in_parts};
use super::wire::{Ask, Http1};

/// Larger than the limit of recorded responses here.
const PART: &str = "a part above the recording limit";

async fn events(State(stage): State<Arc<Stage>>) -> Response {
    stage.run();
    let body = in_parts(stage, vec![Ok("data: 1\n\n"), Ok("data: 2\n\n")]);
    Response::builder().header("Content-Type", "Text/Event-Stream; charset=utf-8").body(body).unwrap()
}

async fn large(State(stage): State<Arc<Stage>>) -> Body {
    stage.run();
    in_parts(stage, vec![Ok(PART), Ok(PART)])
}

async fn broken(State(stage): State<Arc<Stage>>) -> Body {
    stage.run();
    stage.go();
    in_parts(stage, vec![Ok("part"), Err(io::Error::other("planned"))])
}

async fn short(State(stage): State<Arc<Stage>>) -> Response {
    stage.run();
    let body = in_parts(stage, vec![Ok("part")]);
    Response::builder().header("Content-Length", "10").body(body).unwrap()
}

fn routes() -> Router<Arc<Stage>> {
    Router::new()
        .route("/events", any(events))
        .route("/large", any(large))
        .route("/broken", any(broken))
        .route("/short", any(short))
}

/// A service with a small limit of recorded responses.
async fn serve() -> Service {
    let policy = HttpPolicy::default().outcome_bytes_max(16);
    Service::start(Setup { policy, routes, ..Setup::default() }).await
}

/// A service whose store has a small limit of outcomes.
async fn serve_on_little() -> Service {
    let store = ReferenceStore::new(SystemClock::new()).outcome_bytes_max(16);
    Service::start_on(Arc::new(store), Setup { routes, ..Setup::default() }).await
}

#[tokio::test]
async fn r_10_an_unrecorded_response_is_streamed_and_never_runs_again() {
    let cases = [
        (serve().await, "/events", ["data: 1\n\n", "data: 2\n\n"]),
        (serve().await, "/large", [PART, PART]),
        (serve_on_little().await, "/large", [PART, PART]),
    ];
    for (service, path, parts) in cases {
        let ask = Ask::post(path).key("k");
        let mut first = Http1::open(service.address).await;
        first.send(&ask.wire()).await;
        assert_eq!(first.head().await.status, 200, "{path}");
        assert_eq!(
            first.chunk().await.unwrap(),
            parts[0].as_bytes(),
            "the handler has not produced the rest yet"
        );
        service.ask(&ask).await.assert_problem(409, "result-unavailable");
        service.stage.go();
        assert_eq!(first.chunk().await.unwrap(), parts[1].as_bytes());
        assert_eq!(first.chunk().await, None);
        service.ask(&ask).await.assert_problem(409, "result-unavailable");
        assert_eq!((service.stage.runs(), service.states().await), (1, vec![RecordState::Completed]));
    }
}

#[tokio::test]
async fn r_10_a_client_that_cancels_a_stream_does_not_get_a_second_one() {
    let service = serve().await;
    let ask = Ask::post("/events").key("k");
    let mut first = Http1::open(service.address).await;
    first.send(&ask.wire()).await;
    first.head().await;
    drop(first);
    service.ask(&ask).await.assert_problem(409, "result-unavailable");
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn r_10_an_incomplete_response_is_uncertain() {
    for path in ["/broken", "/short"] {
        let service = serve().await;
        let ask = Ask::post(path).key("k");
        service.ask(&ask).await.assert_problem(502, "uncertain");
        assert_eq!(service.states().await, [RecordState::Uncertain], "{path}");
        service.ask(&ask).await.assert_problem(409, "uncertain");
        assert_eq!(service.stage.runs(), 1, "{path}");
    }
}
