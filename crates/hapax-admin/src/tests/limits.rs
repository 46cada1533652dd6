//! What the listener does not take.

use std::sync::Arc;
use std::time::Duration;

use hapax::MemoryStore;
use hapax::http::settings::Span;
use hapax_testkit::{Fault, Faulty, Op, Plan, Point};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::showcase;

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

/// How many connections there may be where a test uses them up.
const FEW: usize = 4;

/// With no deadline that could help.
fn patient(options: &mut AdminOptions) {
    options.connections_max = FEW;
    options.header_time = Span(Duration::from_secs(3600));
    options.request_time = Span(Duration::from_secs(3600));
}

/// Asks on a connection of its own, and does not wait for ever.
async fn answered(show: &Showcase, path: &str) -> String {
    let ask = async {
        let mut stream = connect(show).await;
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        rest(&mut stream).await
    };
    tokio::time::timeout(Duration::from_secs(60), ask).await.unwrap_or_else(|_| panic!("{path}: no answer"))
}

/// Whatever they have sent, as long as nothing is worked on for them.
#[tokio::test]
async fn connections_that_stand_still_give_way_to_new_ones() {
    const WHOLE: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const HALF_A_BODY: &str = "POST /login HTTP/1.1\r\nHost: localhost\r\n\
        Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\nhalf";
    for sent in ["", "GET /heal", WHOLE, &WHOLE.repeat(1000), HALF_A_BODY] {
        let show = Showcase::with(limited(patient)).await;
        let mut open = Vec::new();
        for _ in 0..3 * FEW {
            let mut stream = connect(&show).await;
            stream.write_all(sent.as_bytes()).await.unwrap();
            open.push(stream);
        }
        for path in ["/healthz", "/readyz", "/metrics"] {
            let answer = answered(&show, path).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{sent:?}: {answer}");
        }
        show.stop().await;
    }
}

#[tokio::test]
async fn probes_are_answered_while_every_connection_is_being_worked_for() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let (reached, mut seen) = tokio::sync::mpsc::unbounded_channel();
    store.observe(move |step| {
        if step.op == Op::List {
            let _ = reached.send(());
        }
    });
    let stall = Fault::Stall(Point::Before);
    let mut setting = limited(patient);
    setting.store = Arc::new(store.clone());
    let show = Showcase::with(setting).await;
    store.set_plan(Plan::new().always(Op::List, stall).always(Op::Health, stall));
    let mut working = Vec::new();
    for _ in 0..FEW {
        let mut stream = connect(&show).await;
        let head = format!(
            "GET /api/v1/records HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        seen.recv().await.unwrap();
        working.push(stream);
    }
    assert!(answered(&show, "/healthz").await.starts_with("HTTP/1.1 200 OK"));
    let ready = answered(&show, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("did not respond in time"), "{ready}");
    let other = answered(&show, "/metrics").await;
    assert!(other.starts_with("HTTP/1.1 503 ") && other.contains("/errors/overloaded\""), "{other}");
    // Those that were worked for kept their places.
    store.set_plan(Plan::new());
    store.resume();
    for mut stream in working {
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200 OK");
    }
    show.stop().await;
}

/// What was begun is answered and written down; what is not whole was not begun.
#[tokio::test]
async fn at_the_end_a_change_that_has_begun_is_finished_and_half_a_request_is_not_waited_for() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let (reached, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let dir = tempfile::tempdir().unwrap();
    let mut setting = limited(patient);
    setting.store = Arc::new(store.clone());
    setting.data_dir = Some(dir.path().to_owned());
    let show = Showcase::with(setting).await;
    let id = showcase::completed(&store, "a").await;
    let body = serde_json::json!({ "version": show.version(&id).await }).to_string();
    store.observe(move |step| {
        if step.op == Op::Delete {
            let _ = reached.send(());
        }
    });
    store.set_plan(Plan::new().at_nth(Op::Delete, 1, Fault::Stall(Point::Before)));
    let mut asked = Vec::new();
    for sent in [&body[..], &body[..4]] {
        let mut stream = connect(&show).await;
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
    let stopped = tokio::spawn(show.stop());
    assert_eq!(rest(&mut half).await, "");
    store.resume();
    let answer = rest(&mut whole).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    stopped.await.unwrap();
    let log = std::fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    assert!(log.lines().last().unwrap().contains("\"done\""), "{log}");
}

#[tokio::test]
async fn a_store_that_never_answers_ends_in_a_refusal_that_says_whether_something_was_begun() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let mut setting = limited(|options| options.request_time = Span(Duration::from_millis(200)));
    setting.store = Arc::new(store.clone());
    let show = Showcase::with(setting).await;
    let id = showcase::completed(&store, "a").await;
    // Not over the listener: it may be slow today, and its time is short here.
    let looked_at = show.shared.records.show(&id, crate::view::Payload::Hidden).await.unwrap().record.version;
    let body = serde_json::json!({ "version": looked_at });
    let stall = Fault::Stall(Point::Before);
    store.set_plan(Plan::new().always(Op::List, stall).always(Op::Delete, stall));
    show.get("/api/v1/records").await.refused(503, "store-unavailable");
    show.post(&format!("/api/v1/records/{id}/delete"), body).await.refused(503, "store-unknown");
    store.resume();
    show.stop().await;
}
