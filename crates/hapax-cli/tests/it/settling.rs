//! `hapax records settle` for HTTP requests: what is typed is what retries get through the sidecar.

use serde_json::Value;

use crate::binary::{Run, command, hapax, run};
use crate::fixture::Fixture;
use crate::sidecar::{Message, Origin, Sidecar, ask};

const TOKEN: &str = "a-token-of-the-tests-0123";

/// A service that hangs up on every order, and a sidecar that is left with an uncertain record.
struct Uncertain {
    fixture: Fixture,
    origin: Origin,
    sidecar: Option<Sidecar>,
    id: String,
}

impl Uncertain {
    fn start() -> Self {
        let origin = Origin::start(|_, _| None);
        let fixture = Fixture::bare();
        let mut this = Self { fixture, origin, sidecar: None, id: String::new() };
        this.serve();
        assert_eq!(this.order().status(), 502);
        this.id = this.origin.seen()[0].header("idempotency-operation").unwrap().to_owned();
        this
    }

    fn serve(&mut self) {
        let mut typed = command(self.fixture.path());
        typed.args(["serve", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        typed.args(["--upstream", &self.origin.url()]).env("HAPAX_ADMIN_TOKEN", TOKEN);
        self.sidecar = Some(Sidecar::spawn(&mut typed));
    }

    fn order(&self) -> Message {
        let sidecar = self.sidecar.as_ref().unwrap();
        ask(sidecar.address(), "POST /orders\nIdempotency-Key: k", "{}")
    }

    /// Settles it in the store, while nobody serves.
    fn settle_in_the_store(&mut self, args: &[&str]) -> Run {
        drop(self.sidecar.take());
        let settle = [&["records", "settle", &self.id, "--applied", "--yes"], args].concat();
        let run = hapax(self.fixture.path(), &settle);
        self.serve();
        run
    }

    /// Settles it at the sidecar that serves.
    fn settle_at_the_sidecar(&self, args: &[&str]) -> Run {
        let url = format!("http://{}", self.sidecar.as_ref().unwrap().admin());
        let mut settle = command(self.fixture.path());
        settle.args(["records", "settle", &self.id, "--applied", "--yes", "--admin", &url]).args(args);
        run(settle.env("HAPAX_ADMIN_TOKEN", TOKEN))
    }

    fn shown(&self) -> Value {
        let args = ["records", "show", &self.id, "--json"];
        hapax(self.fixture.path(), &args).ended(0).json()["record"].clone()
    }

    /// Every retry gets this, and nothing ran again.
    fn replays(&self, status: u16, headers: &[(&str, &str)], body: &str) {
        let answer = self.order();
        assert_eq!((answer.status(), answer.body.as_str()), (status, body), "{answer:?}");
        for (name, value) in headers.iter().chain(&[("x-idempotent-replayed", "true")]) {
            assert_eq!(answer.header(name), Some(*value), "{answer:?}");
        }
        assert_eq!(self.origin.seen().len(), 1);
    }
}

#[test]
fn a_retry_gets_the_answer_that_was_settled_in_the_store() {
    let mut it = Uncertain::start();
    let run = it.settle_in_the_store(&[
        "--status",
        "201",
        "--body-json",
        "{\"id\":  7.0}",
        "--header",
        "Location: /orders/7",
        "--header",
        "X-Note: a: b",
    ]);
    assert!(run.ended(0).stdout.contains("settled as applied"));
    let fields = [("content-type", "application/json"), ("location", "/orders/7"), ("x-note", "a: b")];
    it.replays(201, &fields, "{\"id\":  7.0}");
}

#[test]
fn a_retry_gets_the_answer_that_was_settled_at_the_sidecar() {
    let it = Uncertain::start();
    std::fs::write(it.fixture.path().join("answer.xml"), "<order/>\n").unwrap();
    let args = ["--status", "402", "--body-file", "answer.xml", "--content-type", "application/xml"];
    it.settle_at_the_sidecar(&[&args[..], &["--reason", "seen at the bank"]].concat()).ended(0);
    it.replays(402, &[("content-type", "application/xml")], "<order/>\n");
    assert_eq!(it.shown()["state"], "failed");
}

#[test]
fn a_text_or_nothing_can_be_the_body() {
    let it = Uncertain::start();
    it.settle_at_the_sidecar(&["--status", "204"]).ended(0);
    it.replays(204, &[], "");
    let it = Uncertain::start();
    it.settle_at_the_sidecar(&["--status", "200", "--body", "made", "--content-type", "text/plain"]).ended(0);
    it.replays(200, &[("content-type", "text/plain")], "made");
}

#[test]
fn what_no_retry_could_be_answered_with_is_refused() {
    let mut it = Uncertain::start();
    let wrong: [&[&str]; 9] = [
        &["--status", "99"],
        &["--status", "101"],
        &["--status", "1000"],
        &["--status", "204", "--body", "x"],
        &["--status", "200", "--body-json", "{oops"],
        &["--status", "200", "--body-file", "no-such-file"],
        &["--status", "200", "--header", "a: b\r\nc: d"],
        &["--status", "200", "--header", "Content-Length: 7"],
        &["--status", "200", "--header", "Content-Type: a/b", "--content-type", "c/d"],
    ];
    for args in wrong {
        it.settle_at_the_sidecar(args).failed(2, "input-invalid");
    }
    it.settle_in_the_store(wrong[0]).failed(2, "input-invalid");
    for args in [
        &["--body", "x"][..],
        &["--status", "200", "--class", "error"],
        &["--status", "200", "--payload", "x"],
    ] {
        it.settle_at_the_sidecar(args).ended(2);
    }
    assert_eq!(it.shown()["state"], "uncertain");
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    let it = Uncertain::start();
    let large = it.fixture.path().join("large");
    let file = std::fs::File::create(&large).unwrap();
    let settle = |bytes: u64| {
        file.set_len(bytes).unwrap();
        it.settle_at_the_sidecar(&["--status", "200", "--body-file", "large"])
    };
    settle(5 << 20).failed(4, "too-large");
    settle((64 << 20) + 1).failed(4, "too-large");
    assert_eq!(it.shown()["state"], "uncertain");
}

#[test]
fn a_result_that_no_request_can_be_answered_with_is_told_before() {
    let it = Uncertain::start();
    let run = it.settle_at_the_sidecar(&["--json-value", "7"]).ended(0);
    assert!(run.stderr.contains("give an answer with --status instead"), "{run:?}");
    assert_eq!(it.order().status(), 409);
}
