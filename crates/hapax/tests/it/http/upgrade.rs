//! Upgraded connections pass unchanged, and an offer of another HTTP version does not.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use hapax::http::HttpPolicy;
use hapax_testkit::Op;
use http::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::service::{Service, Setup, Stage};
use super::wire::{Ask, Http1};

/// Echoes every byte after the switch.
async fn echo(State(stage): State<Arc<Stage>>, request: Request) -> Response {
    stage.run();
    let status = match *request.method() {
        Method::CONNECT => StatusCode::OK,
        _ => StatusCode::SWITCHING_PROTOCOLS,
    };
    let is_key_there = request.headers().contains_key("Idempotency-Key");
    tokio::spawn(async move {
        let mut connection = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        let mut word = [0; 4];
        connection.read_exact(&mut word).await.unwrap();
        connection.write_all(&word).await.unwrap();
    });
    let response = Response::builder().status(status).header("Key-Seen", is_key_there.to_string());
    match status {
        StatusCode::OK => response,
        _ => response.header("Connection", "upgrade").header("Upgrade", "websocket"),
    }
    .body(Body::empty())
    .unwrap()
}

#[tokio::test]
async fn m_04_upgrades_and_tunnels_pass_unchanged() {
    let websocket = |method: &str| {
        Ask::new(method, "/chat").header("Connection", "Upgrade").header("Upgrade", "websocket")
    };
    let cases =
        [(websocket("GET"), 101), (websocket("POST"), 101), (Ask::new("CONNECT", "example.com:443"), 200)];
    let service = Service::start(Setup {
        policy: HttpPolicy::default().methods([Method::GET, Method::POST, Method::CONNECT]),
        routes: || Router::new().fallback(echo),
        ..Setup::default()
    })
    .await;
    for (ask, status) in cases {
        let ask = ask.key("k");
        for _ in 0..2 {
            let mut client = Http1::open(service.address).await;
            client.send(&ask.wire()).await;
            let answer = client.head().await;
            assert_eq!((answer.status, answer.header("Key-Seen")), (status, Some("true")), "{ask:?}");
            client.send(b"ping").await;
            assert_eq!(client.bytes(4).await, b"ping", "{ask:?}");
        }
    }
    assert_eq!((service.stage.runs(), service.stage.seen().called(Op::Claim)), (6, 0));
}

#[tokio::test]
async fn m_04_an_offer_of_another_http_version_stays_protected() {
    let service = Service::new(HttpPolicy::default()).await;
    for (key, offer) in [("a", "h2c"), ("b", "HTTP/2.0"), ("c", "TLS/1.3, h2c")] {
        let ask = Ask::post("/orders")
            .key(key)
            .header("Connection", "Upgrade, HTTP2-Settings")
            .header("Upgrade", offer)
            .header("HTTP2-Settings", "AAMAAABkAAQAAP__");
        let first = service.ask(&ask).await;
        assert_eq!((first.status, first.is_replayed()), (201, false), "{offer}");
        service.ask(&ask).await.assert_replay(201, &first.body);
    }
    assert_eq!(service.stage.runs(), 3);
}
