//! What the listener does not take.

use std::time::Duration;

use hapax::MemoryStore;
use hapax::http::settings::Span;
use hapax_testkit::{Fault, Faulty, Op, Plan, Point};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::admin::showcase;

fn limited(change: impl FnOnce(&mut AdminOptions)) -> Setting {
    let mut setting = Setting::default();
    change(&mut setting.options);
    setting
}

async fn connect(show: &Showcase) -> TcpStream {
    TcpStream::connect(show.url.trim_start_matches("http://")).await.unwrap()
}

/// Everything until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let show = Showcase::with(limited(|options| options.body_bytes_max = 100)).await;
    let body = serde_json::json!({ "operation": "x".repeat(200) });
    show.post("/api/v1/records/search", body).await.refused(413, "too-large");
    show.stop().await;
}

#[tokio::test]
async fn a_head_that_does_not_come_or_does_not_end_ends_the_connection() {
    let show = Showcase::with(limited(|options| options.header_time = Span(Duration::from_millis(50)))).await;
    let mut drip = connect(&show).await;
    drip.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    rest(&mut drip).await;
    let mut long = connect(&show).await;
    let head = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(100_000));
    let _ = long.write_all(head.as_bytes()).await;
    assert!(!rest(&mut long).await.starts_with("HTTP/1.1 200"));
    show.stop().await;
}

#[tokio::test]
async fn more_connections_than_allowed_wait_for_a_place() {
    let show = Showcase::with(limited(|options| options.connections_max = 1)).await;
    let mut first = connect(&show).await;
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut begin = [0; 12];
    first.read_exact(&mut begin).await.unwrap();
    let mut second = connect(&show).await;
    second.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    drop(first);
    assert!(rest(&mut second).await.starts_with("HTTP/1.1 200"));
    show.stop().await;
}

#[tokio::test]
async fn a_store_that_never_answers_ends_in_a_refusal_that_says_whether_something_was_begun() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let mut setting = limited(|options| options.request_time = Span(Duration::from_millis(200)));
    setting.store = Arc::new(store.clone());
    let show = Showcase::with(setting).await;
    let id = showcase::completed(&store, "a").await;
    // Not over the listener: it may be slow today, and its time is short here.
    let looked_at = show.shared.desk.show(&id, crate::view::Payload::Hidden).await.unwrap().record.version;
    let body = serde_json::json!({ "version": looked_at });
    let stall = Fault::Stall(Point::Before);
    store.set_plan(Plan::new().always(Op::List, stall).always(Op::Delete, stall));
    show.get("/api/v1/records").await.refused(503, "store-unavailable");
    show.post(&format!("/api/v1/records/{id}/delete"), body).await.refused(503, "store-unknown");
    store.resume();
    show.stop().await;
}
