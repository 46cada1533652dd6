//! Request bodies that are incomplete or too large: nothing is claimed for them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::any;
use bytes::Bytes;
use hapax::http::HttpPolicy;
use hapax_testkit::Op;
use http_body_util::{BodyExt as _, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::service::{Service, Setup, Stage};
use super::wire::{Ask, Http1, Http2};

/// Nothing was claimed for a body that broke off; with the complete body, the key is fresh.
async fn check_key_is_unused(service: &Service, ask: &Ask) {
    service.stage.until(|seen| seen.left == 1).await;
    let claims = service.stage.seen().called(Op::Claim);
    assert_eq!((claims, service.states().await.len(), service.stage.runs()), (0, 0, 0));
    service.ask(ask).await.assert_first(201, "order-1");
}

#[tokio::test]
async fn t_03_a_truncated_body_never_claims() {
    let ask = Ask::post("/orders").key("k").body("an order");
    let with_length = [ask.head(), b"an o".to_vec()].concat();
    let in_chunks = ask.chunked(4);
    for sent in [with_length.as_slice(), &in_chunks[..in_chunks.len() - 8]] {
        for is_half_closed in [false, true] {
            let service = Service::new(HttpPolicy::default()).await;
            let mut first = Http1::open(service.address).await;
            first.send(sent).await;
            if is_half_closed {
                first.half_close().await;
                let text = String::from_utf8(first.rest().await).unwrap();
                assert!(text.is_empty() || text.contains("body-incomplete"), "{text}");
            }
            drop(first);
            check_key_is_unused(&service, &ask).await;
        }
    }
}

#[tokio::test]
async fn t_03_a_stream_reset_during_its_body_never_claims() {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/orders").key("k").body("an order");
    let stream = TcpStream::connect(service.address).await.unwrap();
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    let connection = tokio::spawn(connection);
    let part = http_body::Frame::data(Bytes::from_static(b"an o"));
    let endless = futures_util::stream::iter([Ok::<_, std::io::Error>(part)]);
    let endless = StreamBody::new(futures_util::StreamExt::chain(endless, futures_util::stream::pending()));
    let (parts, _) = ask.request().into_parts();
    let first = tokio::spawn(sender.send_request(http::Request::from_parts(parts, endless)));
    service.stage.until(|seen| seen.arrived == 1).await;
    first.abort();
    connection.abort();
    check_key_is_unused(&service, &ask).await;
}

#[tokio::test]
async fn f_09_a_body_over_the_limit_is_refused_before_claiming() {
    let service = Service::new(HttpPolicy::default().body_bytes_max(8)).await;
    let ask = Ask::post("/orders").key("k").body("an order.");
    for wire in [ask.wire(), ask.chunked(4)] {
        let mut client = Http1::open(service.address).await;
        client.send(&wire).await;
        client.answer().await.assert_problem(413, "too-large");
    }
    let claims = service.stage.seen().called(Op::Claim);
    assert_eq!((claims, service.states().await.len(), service.stage.runs()), (0, 0, 0));
    let ask = Ask::post("/orders").key("k").body("an order");
    for (wire, is_replay) in [(ask.wire(), false), (ask.chunked(4), true)] {
        let mut client = Http1::open(service.address).await;
        client.send(&wire).await;
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.is_replayed()),
            (201, is_replay),
            "eight bytes are within the limit"
        );
    }
}

/// Holds its request's body while it waits.
async fn keep_the_body(State(stage): State<Arc<Stage>>, body: Body) -> Bytes {
    stage.run();
    stage.rest().await;
    body.collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn f_09_bodies_over_the_budget_of_the_process_are_refused_before_claiming() {
    let service = Service::start(Setup {
        layer: |layer| layer.body_budget(10),
        routes: || Router::new().route("/keeps", any(keep_the_body)),
        ..Setup::default()
    })
    .await;
    let mut first = service.begin(&Ask::post("/keeps").key("k").body("an order")).await;
    let second = Ask::post("/orders").key("k2").body("an order");
    service.ask(&second).await.assert_problem(503, "overloaded");
    service.ask(&Ask::post("/orders").key("k3")).await.assert_first(201, "order-2");
    assert_eq!(service.stage.seen().called(Op::Claim), 2);
    service.stage.go();
    first.answer().await.assert_first(200, "an order");
    service.ask(&second).await.assert_first(201, "order-3");
}

/// A body sent in one piece and the same body in many are the same request.
#[tokio::test]
async fn f_08_chunks_and_http_versions_do_not_count() {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/orders").key("k").body("an order");
    service.ask(&ask).await.assert_first(201, "order-1");
    for size in [1, 3, 8] {
        let mut client = Http1::open(service.address).await;
        client.send(&ask.chunked(size)).await;
        client.answer().await.assert_replay(201, "order-1");
    }
    Http2::open(service.address).await.ask(&ask).await.assert_replay(201, "order-1");
}
