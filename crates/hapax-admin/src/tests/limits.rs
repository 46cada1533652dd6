//! Tests of limits and timeouts.

use std::sync::Arc;
use std::time::Duration;

use hapax::MemoryStore;
use hapax::http::settings::Span;
use hapax_testkit::{Fault, Faulty, Op, Plan, Point};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::test_listener;

fn limited(change: impl FnOnce(&mut AdminOptions)) -> Setup {
    let mut setup = Setup::default();
    change(&mut setup.options);
    setup
}

async fn connect(listener: &TestListener) -> TcpStream {
    TcpStream::connect(listener.url.trim_start_matches("http://")).await.unwrap()
}

/// Reads until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn an_oversized_body_is_refused() {
    let listener = TestListener::with(limited(|options| options.body_bytes_max = 100)).await;
    let body = serde_json::json!({ "operation": "x".repeat(200) });
    listener.post("/api/v1/records/search", body).await.refused(413, "too-large");
    listener.stop().await;
}

#[tokio::test]
async fn a_slow_or_oversized_head_closes_the_connection() {
    let listener =
        TestListener::with(limited(|options| options.header_time = Span(Duration::from_millis(50)))).await;
    let mut drip = connect(&listener).await;
    drip.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    rest(&mut drip).await;
    let mut long = connect(&listener).await;
    let head = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(100_000));
    let _ = long.write_all(head.as_bytes()).await;
    assert!(!rest(&mut long).await.starts_with("HTTP/1.1 200"));
    listener.stop().await;
}

/// A small limit of connections.
const FEW: usize = 4;

/// Few connections, and no timeouts.
fn patient(options: &mut AdminOptions) {
    options.connections_max = FEW;
    options.header_time = Span(Duration::from_secs(3600));
    options.request_time = Span(Duration::from_secs(3600));
}

/// Sends a request on a new connection and returns the response.
async fn answered(listener: &TestListener, path: &str) -> String {
    let ask = async {
        let mut stream = connect(listener).await;
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        rest(&mut stream).await
    };
    tokio::time::timeout(Duration::from_secs(60), ask).await.unwrap_or_else(|_| panic!("{path}: no response"))
}

/// Whatever was sent, unless a complete request is being processed.
#[tokio::test]
async fn idle_connections_are_evicted_for_new_ones() {
    const WHOLE: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const HALF_A_BODY: &str = "POST /login HTTP/1.1\r\nHost: localhost\r\n\
        Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nhalf";
    for sent in ["", "GET /heal", WHOLE, &WHOLE.repeat(1000), HALF_A_BODY] {
        let listener = TestListener::with(limited(patient)).await;
        let mut open = Vec::new();
        for _ in 0..3 * FEW {
            let mut stream = connect(&listener).await;
            stream.write_all(sent.as_bytes()).await.unwrap();
            open.push(stream);
        }
        for path in ["/healthz", "/readyz", "/metrics"] {
            let answer = answered(&listener, path).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{sent:?}: {answer}");
        }
        listener.stop().await;
    }
}

#[tokio::test]
async fn probes_succeed_while_all_connections_have_a_request_in_progress() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let (reached, mut seen) = tokio::sync::mpsc::unbounded_channel();
    store.observe(move |step| {
        if step.op == Op::List {
            let _ = reached.send(());
        }
    });
    let stall = Fault::Stall(Point::Before);
    let mut setup = limited(patient);
    setup.store = Arc::new(store.clone());
    let listener = TestListener::with(setup).await;
    store.set_plan(Plan::new().always(Op::List, stall).always(Op::Health, stall));
    let mut working = Vec::new();
    for _ in 0..FEW {
        let mut stream = connect(&listener).await;
        let head = format!(
            "GET /api/v1/records HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        seen.recv().await.unwrap();
        working.push(stream);
    }
    assert!(answered(&listener, "/healthz").await.starts_with("HTTP/1.1 200 OK"));
    let ready = answered(&listener, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("did not respond in time"), "{ready}");
    let other = answered(&listener, "/metrics").await;
    assert!(other.starts_with("HTTP/1.1 503 ") && other.contains("/errors/overloaded\""), "{other}");
    // The connections with a request in progress kept their slots.
    store.set_plan(Plan::new());
    store.resume();
    for mut stream in working {
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200 OK");
    }
    listener.stop().await;
}

#[tokio::test]
async fn shutdown_finishes_changes_in_progress_and_drops_incomplete_requests() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let (reached, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let dir = tempfile::tempdir().unwrap();
    let mut setup = limited(patient);
    setup.store = Arc::new(store.clone());
    setup.data_dir = Some(dir.path().to_owned());
    let listener = TestListener::with(setup).await;
    let id = test_listener::completed(&store, "a").await;
    let body = serde_json::json!({ "version": listener.version(&id).await }).to_string();
    store.observe(move |step| {
        if step.op == Op::Delete {
            let _ = reached.send(());
        }
    });
    store.set_plan(Plan::new().at_nth(Op::Delete, 1, Fault::Stall(Point::Before)));
    let mut asked = Vec::new();
    for sent in [&body[..], &body[..4]] {
        let mut stream = connect(&listener).await;
        let head = format!(
            "POST /api/v1/records/{id}/delete HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{sent}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        asked.push(stream);
    }
    seen.recv().await.unwrap();
    let (mut whole, mut half) = (asked.remove(0), asked.remove(0));
    let stopped = tokio::spawn(listener.stop());
    assert_eq!(rest(&mut half).await, "");
    store.resume();
    let answer = rest(&mut whole).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    stopped.await.unwrap();
    let log = std::fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    assert!(log.lines().last().unwrap().contains("\"done\""), "{log}");
}

#[tokio::test]
async fn a_timeout_is_unknown_for_a_change_and_unavailable_for_a_query() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let mut setup = limited(|options| options.request_time = Span(Duration::from_millis(200)));
    setup.store = Arc::new(store.clone());
    let listener = TestListener::with(setup).await;
    let id = test_listener::completed(&store, "a").await;
    // Directly from the store, because the listener has a short timeout here.
    let looked_at =
        listener.shared.records.show(&id, crate::view::Payload::Hidden).await.unwrap().record.version;
    let body = serde_json::json!({ "version": looked_at });
    let stall = Fault::Stall(Point::Before);
    store.set_plan(Plan::new().always(Op::List, stall).always(Op::Delete, stall));
    listener.get("/api/v1/records").await.refused(503, "store-unavailable");
    listener.post(&format!("/api/v1/records/{id}/delete"), body).await.refused(503, "store-unknown");
    store.resume();
    listener.stop().await;
}
