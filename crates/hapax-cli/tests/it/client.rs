//! `hapax client resume`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hapax_client::{Client, Key, RetryPolicy};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::binary::{Run, command, hapax, started};
use crate::fixture::{Fixture, no_process_starts};

/// A part of every key, which must not be printed.
const KEY: &str = "canary-key-91bc";
const TOKEN: &str = "Authorization: Bearer canary-token-55d0";

/// A service that is down until it is told otherwise, and a directory with a journal.
struct Rig {
    fixture: Fixture,
    runtime: Runtime,
    address: SocketAddr,
    is_up: Arc<AtomicBool>,
}

impl Rig {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let is_up = Arc::new(AtomicBool::new(false));
        let app = Router::new()
            .route("/orders", post(order))
            .route("/accounts", post(account))
            .route("/uncertain", post(async || problem(StatusCode::CONFLICT, "uncertain")))
            .route("/refused", post(refuse))
            .with_state(is_up.clone());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { fixture: Fixture::bare(), runtime, address, is_up }
    }

    /// Makes calls to these paths, in a client that is gone afterwards.
    fn leave_open(&self, paths: &[&str]) {
        let origin = self.origin();
        self.leave_open_at(&paths.iter().map(|path| format!("{origin}{path}")).collect::<Vec<_>>());
    }

    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    fn leave_open_at(&self, urls: &[String]) {
        let _no_process_starts = no_process_starts();
        self.runtime.block_on(async {
            let client = self.client();
            for url in urls {
                let key = Key::new(format!("{KEY}{url}")).unwrap();
                let call = client.post(url).key(key);
                call.header("authorization", "Bearer of-the-caller").body("book").send().await.unwrap_err();
            }
        });
    }

    fn client(&self) -> Client {
        let journal = format!("file:{}", self.journal().display());
        Client::builder().journal(journal).retry(RetryPolicy::never()).build().unwrap()
    }

    fn journal(&self) -> PathBuf {
        self.fixture.path().join("journal")
    }

    fn come_up(&self) {
        self.is_up.store(true, Ordering::Relaxed);
    }

    fn resume(&self, args: &[&str]) -> Run {
        let run = resume(self.fixture.path(), args);
        for secret in [KEY, "canary-token-55d0"] {
            assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{run:?}");
        }
        run
    }
}

fn resume(directory: &Path, args: &[&str]) -> Run {
    hapax(directory, &[&["client", "resume", "--journal", "file:journal"], args].concat())
}

async fn order(State(is_up): State<Arc<AtomicBool>>, body: String) -> StatusCode {
    match is_up.load(Ordering::Relaxed) {
        true if body == "book" => StatusCode::CREATED,
        true => StatusCode::BAD_REQUEST,
        false => StatusCode::SERVICE_UNAVAILABLE,
    }
}

async fn account(State(is_up): State<Arc<AtomicBool>>, headers: HeaderMap) -> StatusCode {
    let is_known = headers.get("authorization").is_some_and(|value| value == "Bearer canary-token-55d0");
    match is_up.load(Ordering::Relaxed) {
        true if is_known => StatusCode::CREATED,
        true => StatusCode::UNAUTHORIZED,
        false => StatusCode::SERVICE_UNAVAILABLE,
    }
}

async fn refuse(State(is_up): State<Arc<AtomicBool>>) -> Response {
    match is_up.load(Ordering::Relaxed) {
        true => problem(StatusCode::CONFLICT, "result-unavailable"),
        false => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

fn problem(status: StatusCode, code: &str) -> Response {
    let body = format!(r#"{{"type":"https://hapax.dev/errors/{code}"}}"#);
    (status, [("content-type", "application/problem+json")], body).into_response()
}

#[test]
fn open_calls_are_listed_and_finished() {
    let rig = Rig::start();
    rig.leave_open(&["/orders"]);
    let listed = rig.resume(&["--list"]).ended(0).stdout;
    let [header, call] = listed.lines().collect::<Vec<_>>()[..] else { panic!("{listed}") };
    assert!(header.starts_with("STATE") && header.contains("KEY HASH"), "{listed}");
    let url = format!("http://{}/orders", rig.address);
    assert!(call.starts_with("open") && call.contains("POST") && call.contains(&url), "{listed}");

    let document = rig.resume(&["--list", "--json"]).ended(0).json();
    let call = &document["calls"][0];
    assert_eq!(
        (&call["state"], &call["method"], &call["url"]),
        (&"open".into(), &"POST".into(), &url.into())
    );
    assert_eq!(call["key_hash"].as_str().map(str::len), Some(16));
    assert!(call["age_ms"].is_u64() && call["key_made_at_ms"].is_u64(), "{call}");

    rig.come_up();
    let finished = rig.resume(&[]).ended(0).stdout;
    assert!(finished.starts_with("answered POST ") && finished.ends_with(": 201 Created\n"), "{finished}");
    assert_eq!(rig.resume(&[]).ended(0).stdout, "the journal has no open calls\n");
}

#[test]
fn a_service_that_is_down_leaves_the_calls_open() {
    let rig = Rig::start();
    rig.leave_open(&["/orders"]);
    let run = rig.resume(&["--json"]).ended(7);
    let call = &run.json()["calls"][0];
    assert_eq!((&call["outcome"], &call["status"]), (&"open".into(), &Value::Null));
    assert!(call["error"].as_str().is_some_and(|error| error.contains("503")), "{call}");
    assert!(run.stderr.contains("calls-open") && run.stderr.contains("1 of 1 calls"), "{run:?}");
    assert_eq!(rig.resume(&["--list", "--json"]).json()["calls"].as_array().map(Vec::len), Some(1));
}

#[test]
fn credentials_come_from_the_command_line() {
    let rig = Rig::start();
    rig.leave_open(&["/accounts"]);
    rig.come_up();
    let denied = rig.resume(&[]).ended(7);
    assert!(denied.stdout.starts_with("open ") && denied.stdout.contains("401"), "{denied:?}");
    assert!(denied.stderr.contains("--header"), "{denied:?}");
    assert!(rig.resume(&["--header", TOKEN]).ended(0).stdout.starts_with("answered "));
}

#[test]
fn uncertain_and_refused_calls_are_reported() {
    let rig = Rig::start();
    rig.leave_open(&["/uncertain", "/refused", "/orders"]);
    rig.come_up();
    let run = rig.resume(&[]).ended(7);
    let outcomes: Vec<_> = run.stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(outcomes, ["uncertain", "refused", "answered"]);
    assert!(run.stdout.contains("/uncertain") && run.stdout.contains("not sent"), "{run:?}");
    assert!(run.stderr.contains("error[calls-open]: 2 of 3 calls"), "{run:?}");
}

#[test]
fn a_journal_that_cannot_be_used_is_named() {
    let rig = Rig::start();
    let missing = rig.resume(&[]).failed(5, "journal-missing");
    assert!(missing.stderr.contains("file:journal") && !rig.journal().exists(), "{missing:?}");

    rig.leave_open(&["/orders"]);
    {
        let owner = rig.client();
        let in_use = rig.resume(&["--list"]).failed(5, "journal-in-use");
        assert!(in_use.stderr.contains("what to do: stop the process"), "{in_use:?}");
        drop(owner);
    }
    let log = rig.journal().join("calls.log");
    let whole = fs::read(&log).unwrap();
    fs::write(&log, [b"something", &whole[..]].concat()).unwrap();
    rig.resume(&[]).failed(5, "journal-damaged");

    hapax(rig.fixture.path(), &["client", "resume", "--journal", "redis://host"]).failed(2, "input-invalid");
    fs::write(&log, whole).unwrap();
    rig.resume(&["--header", "no header"]).failed(2, "input-invalid");
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_whose_end_cannot_be_printed_stays_open() {
    let rig = Rig::start();
    rig.leave_open(&["/orders"]);
    rig.come_up();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut resume = command(rig.fixture.path());
    resume.args(["client", "resume", "--journal", "file:journal"]).stdout(full);
    assert!(!started(&mut resume).wait().unwrap().success());
    assert_eq!(rig.resume(&["--list", "--json"]).json()["calls"].as_array().map(Vec::len), Some(1));
    assert!(rig.resume(&[]).ended(0).stdout.starts_with("answered "));
}

#[test]
fn the_ends_of_calls_are_one_document_of_a_line_each() {
    let rig = Rig::start();
    rig.leave_open(&["/orders", "/uncertain"]);
    rig.come_up();
    let run = rig.resume(&["--json"]).ended(7);
    assert_eq!(run.stdout.lines().count(), 4, "{run:?}");
    let document = run.json();
    let outcomes: Vec<_> =
        document["calls"].as_array().unwrap().iter().map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, ["answered", "uncertain"]);
}

#[test]
fn a_credential_goes_to_one_origin_only() {
    let rig = Rig::start();
    // The same service under another name is another origin.
    let other = format!("http://localhost:{}", rig.address.port());
    rig.leave_open_at(&[format!("{}/accounts", rig.origin()), format!("{other}/accounts")]);
    rig.come_up();
    let refused = rig.resume(&["--header", TOKEN]).failed(2, "input-invalid");
    assert!(refused.stderr.contains("--origin") && refused.stderr.contains(&other), "{refused:?}");
    rig.resume(&["--origin", "http://third.example", "--header", TOKEN]).failed(2, "input-invalid");
    rig.resume(&["--origin", "accounts"]).failed(2, "input-invalid");
    let count = |args: &[&str]| rig.resume(args).json()["calls"].as_array().map(Vec::len);
    assert_eq!(count(&["--list", "--json"]), Some(2));
    assert_eq!(count(&["--list", "--json", "--origin", &other]), Some(1));

    let one = rig.resume(&["--origin", &format!("{}/", rig.origin()), "--header", TOKEN]).ended(0).stdout;
    assert!(one.lines().count() == 1 && one.contains(&rig.origin()), "{one}");
    // One origin is left.
    let last = rig.resume(&["--header", TOKEN]).ended(0).stdout;
    assert!(last.starts_with("answered ") && last.contains(&other), "{last}");
}
