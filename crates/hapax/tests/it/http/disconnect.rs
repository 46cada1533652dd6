//! A client that disconnects changes nothing: the handler runs to completion, once, and the retry gets its response.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::any;
use hapax::core::State as RecordState;
use hapax::http::HttpPolicy;
use hapax_testkit::Op;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::service::{LONG, Service, Setup, Stage};
use super::wire::{Ask, Http1, Http2, in_time};

/// Larger than socket buffers and HTTP/2 windows, smaller than the limit of recorded responses.
const LARGE: usize = 900_000;

fn large() -> Vec<u8> {
    (0..LARGE).map(|index| (index % 251) as u8).collect()
}

async fn answer_large(State(stage): State<Arc<Stage>>) -> Vec<u8> {
    stage.run();
    large()
}

async fn serve_large() -> Service {
    Service::start(Setup { routes: || Router::new().route("/large", any(answer_large)), ..Setup::default() })
        .await
}

/// The connection of the first attempt is lost while its handler runs. Then the handler ends.
async fn check_lost_while_running(lose: impl AsyncFnOnce(&mut Http1)) {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/slow").key("k").body("an order");
    let mut first = service.begin(&ask).await;
    lose(&mut first).await;
    service.stage.until(|seen| seen.gone == 1).await;
    assert_eq!(service.states().await, [RecordState::InProgress]);
    service.stage.go();
    service.stage.until(|seen| seen.applied(Op::Complete) == 1).await;
    assert_eq!(service.states().await, [RecordState::Completed]);
    service.ask(&ask).await.assert_replay(201, "order-1");
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_06_a_client_that_disconnects_before_the_handler_ends_gets_the_response_later() {
    check_lost_while_running(async |first| first.reopen().await).await;
}

#[tokio::test]
async fn x_06_a_client_that_half_closes_gets_the_response_later() {
    check_lost_while_running(async |first| {
        first.half_close().await;
        assert_eq!(first.rest().await, b"", "the server treats it as a disconnect");
    })
    .await;
}

#[tokio::test]
async fn x_06_a_client_that_disconnects_right_after_sending_causes_one_run_at_most() {
    let service = Service::new(HttpPolicy::default().wait(LONG)).await;
    for round in 1..=20 {
        let ask = Ask::post("/slow").key(&format!("k{round}")).body("an order");
        let mut first = Http1::open(service.address).await;
        first.send(&ask.wire()).await;
        drop(first);
        service.stage.go();
        // Whether the server has read the request when the connection ends is not determined.
        let retry = service.ask(&ask).await;
        assert_eq!((retry.status, retry.text()), (201, format!("order-{round}").as_str()));
        service.ask(&ask).await.assert_replay(201, format!("order-{round}"));
        assert_eq!(service.stage.runs(), round);
    }
}

#[tokio::test]
async fn x_06_a_client_that_disconnects_during_the_response_gets_all_of_it_later() {
    let service = serve_large().await;
    let ask = Ask::post("/large").key("k");
    let mut first = Http1::open(service.address).await;
    first.send(&ask.wire()).await;
    assert_eq!(first.head().await.header("content-length"), Some("900000"));
    assert_eq!(first.bytes(1000).await, large()[..1000]);
    drop(first);
    service.ask(&ask).await.assert_replay(200, large());
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_06_a_stream_reset_before_the_handler_ends_changes_nothing() {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/slow").key("k").body("an order");
    let client = Http2::open(service.address).await;
    let first = tokio::spawn(client.send(&ask));
    service.stage.until(|seen| seen.runs == 1).await;
    first.abort();
    service.stage.until(|seen| seen.gone == 1).await;
    service.stage.go();
    service.stage.until(|seen| seen.applied(Op::Complete) == 1).await;
    client.ask(&ask).await.assert_replay(201, "order-1");
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_06_a_stream_reset_during_the_response_changes_nothing() {
    let service = serve_large().await;
    let ask = Ask::post("/large").key("k");
    let client = Http2::open(service.address).await;
    let mut first = client.send(&ask).await;
    let frame = in_time(first.body_mut().frame()).await.unwrap().unwrap();
    assert!(frame.data_ref().is_some_and(|data| data.len() < LARGE));
    drop(first);
    client.ask(&ask).await.assert_replay(200, large());
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_06_a_response_whose_body_is_dropped_unread_is_recorded() {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/orders").key("k");
    let response = service.router.clone().oneshot(ask.request()).await.unwrap();
    assert_eq!(response.status(), 201);
    drop(response);
    service.ask(&ask).await.assert_replay(201, "order-1");
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_06_a_response_that_its_client_never_reads_is_recorded() {
    let service = serve_large().await;
    let ask = Ask::post("/large").key("k");
    let mut first = Http1::open(service.address).await;
    first.send(&ask.wire()).await;
    // Larger than the socket buffer: the server has a body that is never read.
    service.stage.until(|seen| seen.left == 1).await;
    drop(first);
    service.ask(&ask).await.assert_replay(200, large());
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_06_a_waiting_duplicate_that_disconnects_changes_nothing() {
    let service = Service::new(HttpPolicy::default().wait(LONG)).await;
    let ask = Ask::post("/slow").key("k");
    let mut first = service.begin(&ask).await;
    let mut duplicate = Http1::open(service.address).await;
    duplicate.send(&ask.wire()).await;
    // It claims, starts waiting and claims once more.
    service.stage.until(|seen| seen.applied(Op::Claim) == 3).await;
    drop(duplicate);
    service.stage.until(|seen| seen.gone == 1).await;
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    service.ask(&ask).await.assert_replay(201, "order-1");
    assert_eq!(service.stage.runs(), 1);
}
