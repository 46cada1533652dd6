//! Replays on the wire.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;

use super::service::{Service, Setup, Stage};
use super::wire::{Ask, Http1, Http2, WireResponse};

/// All byte values.
fn binary() -> Vec<u8> {
    (0..=255).cycle().take(70_000).collect()
}

/// Fields of all kinds: those that are replayed, in order, and those of one exchange.
async fn receipt(State(stage): State<Arc<Stage>>) -> Response {
    let run = stage.run();
    let mut response = binary().into_response();
    *response.status_mut() = StatusCode::ACCEPTED;
    let fields = [
        ("location", "/receipts/1"),
        ("x-step", "first"),
        ("link", "<a>; rel=next"),
        ("x-step", "second"),
        ("etag", "\"v1\""),
        ("x-step", "first"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("age", "7"),
        ("keep-alive", "timeout=5"),
    ];
    for (name, value) in fields {
        response.headers_mut().append(name, HeaderValue::from_static(value));
    }
    response.headers_mut().insert("x-request-id", HeaderValue::from(run));
    response
}

async fn trailers(State(stage): State<Arc<Stage>>) -> Response {
    stage.run();
    let mut trailers = HeaderMap::new();
    trailers.append("x-checksum", HeaderValue::from_static("abc"));
    trailers.append("x-signature", HeaderValue::from_static("def"));
    let frames = [Frame::data(Bytes::from_static(b"data")), Frame::trailers(trailers)];
    let frames = futures_util::stream::iter(frames.map(Ok::<_, std::io::Error>));
    let response = Response::builder().header("Trailer", "x-checksum, x-signature");
    response.body(Body::new(StreamBody::new(frames))).unwrap()
}

/// Adds an exchange id to the inner service's responses, as a tracing layer does.
async fn number(request: axum::extract::Request, next: Next) -> Response {
    let id = request.headers().get("x-exchange").cloned();
    let mut response = next.run(request).await;
    if let Some(id) = id {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

async fn serve() -> Service {
    let routes = || {
        Router::new()
            .route("/receipt", any(receipt))
            .route("/trailers", any(trailers))
            .route(
                "/none",
                any(|state: State<Arc<Stage>>| async move { (state.run(), StatusCode::NO_CONTENT).1 }),
            )
            .route(
                "/same",
                any(|state: State<Arc<Stage>>| async move { (state.run(), StatusCode::NOT_MODIFIED).1 }),
            )
    };
    Service::start(Setup { routes, ..Setup::default() }).await
}

/// The parts of a response that a replay must repeat.
fn kept(answer: &WireResponse) -> Vec<(String, String)> {
    let of_the_exchange =
        ["date", "age", "keep-alive", "set-cookie", "x-request-id", "x-idempotent-replayed", "connection"];
    let is_kept = |(name, _): &&(String, String)| !of_the_exchange.contains(&name.as_str());
    let mut kept: Vec<_> = answer.headers.iter().filter(is_kept).cloned().collect();
    // Fields of different names have no order (RFC 9110, section 5.3).
    kept.sort_by(|(name, _), (other, _)| name.cmp(other));
    kept
}

#[tokio::test]
async fn r_01_a_replay_has_the_same_status_fields_and_bytes() {
    let service = serve().await;
    let ask = Ask::post("/receipt").key("k");
    let first = service.ask(&ask).await;
    first.assert_first(202, binary());
    assert_eq!(first.all("x-step"), ["first", "second", "first"]);
    let over_http2 = Http2::open(service.address).await.ask(&ask).await;
    for replay in [service.ask(&ask).await, over_http2] {
        replay.assert_replay(202, binary());
        assert_eq!(kept(&replay), kept(&first));
    }
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn r_04_a_replay_has_its_own_date_and_exchange_fields() {
    let service = serve().await;
    let ask = Ask::post("/receipt").key("k");
    let first = service.ask(&ask).await;
    assert_eq!(
        (first.header("date"), first.header("age")),
        (Some("Thu, 01 Jan 1970 00:00:00 GMT"), Some("7"))
    );
    assert_eq!(first.header("x-request-id"), Some("1"));
    let replay = service.ask(&ask).await;
    assert!(replay.header("date").is_some_and(|date| !date.contains("1970")), "{replay:?}");
    assert_eq!(replay.all("date").len(), 1);
    assert_eq!((replay.header("age"), replay.header("x-request-id")), (None, None));

    let around = service.router.clone().layer(middleware::from_fn(number));
    for exchange in ["7", "8"] {
        let mut request = ask.request();
        request.headers_mut().insert("x-exchange", HeaderValue::from_static(exchange));
        let replay = tower::ServiceExt::oneshot(around.clone(), request).await.unwrap();
        assert_eq!(replay.headers()["x-idempotent-replayed"], "true");
        assert_eq!(replay.headers()["x-request-id"], exchange);
    }
}

#[tokio::test]
async fn r_05_cookies_are_sent_once() {
    let service = serve().await;
    let ask = Ask::post("/receipt").key("k");
    assert_eq!(service.ask(&ask).await.all("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(service.ask(&ask).await.header("set-cookie"), None);
}

#[tokio::test]
async fn r_07_responses_without_content_are_replayed_without_content() {
    for (path, status) in [("/none", 204), ("/same", 304)] {
        let service = serve().await;
        let ask = Ask::post(path).key("k");
        let mut client = Http1::open(service.address).await;
        for is_replay in [false, true] {
            let answer = client.ask(&ask).await;
            assert_eq!((answer.status, answer.is_replayed(), answer.body.len()), (status, is_replay, 0));
            assert_eq!(answer.header("content-length"), None, "{path} {answer:?}");
            assert_eq!(answer.header("transfer-encoding"), None, "{path} {answer:?}");
        }
        assert_eq!(service.stage.runs(), 1);
        let uncovered = client.ask(&Ask::new("GET", path)).await;
        assert_eq!(uncovered.status, status, "the connection is in sync");
    }
}

#[tokio::test]
async fn r_11_trailers_are_replayed_if_the_connection_supports_them() {
    let expected: [(String, String); 2] =
        [("x-checksum", "abc"), ("x-signature", "def")].map(|(name, value)| (name.into(), value.into()));
    let service = serve().await;
    let plain = Ask::post("/trailers").key("k");
    let willing = plain.clone().header("TE", "trailers");
    let client = Http2::open(service.address).await;
    let answers = [service.ask(&willing).await, service.ask(&willing).await, client.ask(&willing).await];
    for (answer, is_replay) in answers.iter().zip([false, true, true]) {
        assert_eq!((answer.status, answer.text(), answer.is_replayed()), (200, "data", is_replay));
        assert_eq!(answer.trailers, expected, "{answer:?}");
    }
    let answer = service.ask(&plain).await;
    answer.assert_replay(200, "data");
    assert_eq!(answer.trailers, [], "the request has no TE: trailers");
    assert_eq!(service.stage.runs(), 1);
}
