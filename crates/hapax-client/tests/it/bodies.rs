//! Bodies that are streams, and responses that are long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use hapax_client::{Error, Limit, UncertainCause};
use http_body_util::Full;

use crate::server::{Server, Step, answer, client, problem, status};

fn stream() -> reqwest::Body {
    reqwest::Body::wrap(Full::new(Bytes::from_static(b"a long file")))
}

#[tokio::test]
async fn c_02_a_body_that_can_be_made_again_is_sent_again() {
    let server = Server::with([status(503), Step::CloseRead, status(200)]).await;
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let make = move || {
        count.fetch_add(1, Ordering::Relaxed);
        stream()
    };
    client().post(server.url("/")).body_stream(make).send().await.unwrap();
    assert_eq!(made.load(Ordering::Relaxed), 3);
    let seen = server.seen();
    assert_eq!((&seen[1], &seen[2]), (&seen[0], &seen[0]));
    assert!(String::from_utf8_lossy(&seen[0].body).contains("a long file"));
}

#[tokio::test]
async fn c_02_a_one_shot_body_has_one_attempt() {
    let server = Server::with([status(503), Step::CloseRead, problem(409, "in-progress", &[])]).await;
    let send = || client().post(server.url("/")).body_once(stream()).send();

    let error = send().await.unwrap_err();
    assert!(matches!(error, Error::Exhausted { limit: Limit::OneShotBody, attempts: 1, .. }), "{error}");
    let error = send().await.unwrap_err();
    assert!(matches!(error, Error::Uncertain { cause: UncertainCause::Transport, .. }), "{error}");
    let error = send().await.unwrap_err();
    assert!(matches!(error, Error::InProgress { limit: Limit::OneShotBody, .. }), "{error}");
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn a_long_response_is_complete() {
    let long = "x".repeat(3 << 20);
    let server = Server::with([answer(200, &[("x-a", "b")], &long), answer(200, &[], &long)]).await;
    let response = client().post(server.url("/long")).send().await.unwrap();
    assert_eq!(response.headers()["x-a"], "b");
    let inner = response.into_inner();
    assert_eq!(inner.url().path(), "/long");
    assert!(inner.bytes().await.unwrap() == long.as_bytes());

    let response = client().post(server.url("/")).stream_response().send().await.unwrap();
    assert!(response.bytes().await.unwrap() == long.as_bytes());
}

#[tokio::test]
async fn a_streamed_response_is_handed_out_at_once() {
    let head = "HTTP/1.1 200 X\r\ncontent-length: 10\r\n";
    let server = Server::with([
        Step::Send(format!("{head}\r\nab")),
        Step::Send(format!("{head}content-type: text/event-stream\r\n\r\nab")),
    ])
    .await;
    let response = client().post(server.url("/")).stream_response().send().await.unwrap();
    assert_eq!(response.attempts(), 1);
    assert!(matches!(response.bytes().await, Err(Error::Decode { .. })));

    let response = client().post(server.url("/")).send().await.unwrap();
    assert_eq!(response.attempts(), 1);
}

#[tokio::test]
async fn the_rest_of_a_long_response_is_not_waited_for() {
    let begun = "x".repeat(2 << 20);
    let server =
        Server::with([Step::Send(format!("HTTP/1.1 200 X\r\ncontent-length: 9999999\r\n\r\n{begun}"))]).await;
    let response = client().post(server.url("/")).send().await.unwrap();
    assert_eq!(response.attempts(), 1);
    assert!(matches!(response.bytes().await, Err(Error::Decode { .. })));
}
