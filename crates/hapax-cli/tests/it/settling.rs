//! `hapax records settle` for HTTP requests: retries through the sidecar receive the result.

use serde_json::Value;

use crate::binary::{Run, command, hapax, run};
use crate::fixture::Fixture;
use crate::sidecar::{Message, Origin, Sidecar, ask};

const TOKEN: &str = "a-token-of-the-tests-0123";

/// An uncertain record of an order whose connection the service has closed, and its sidecar.
struct Uncertain {
    fixture: Fixture,
    origin: Origin,
    sidecar: Option<Sidecar>,
    id: String,
}

impl Uncertain {
    fn start() -> Self {
        Self::start_with("")
    }

    /// The same with this configuration file.
    fn start_with(file: &str) -> Self {
        let origin = Origin::start(|_, _| None);
        let fixture = Fixture::bare();
        std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
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

    /// Settles it in the store, while no sidecar runs.
    fn settle_in_the_store(&mut self, args: &[&str]) -> Run {
        drop(self.sidecar.take());
        let settle = [&["records", "settle", &self.id, "--applied", "--yes"], args].concat();
        let run = hapax(self.fixture.path(), &settle);
        self.serve();
        run
    }

    /// Settles it without flags for the running sidecar.
    fn settle_beside_the_sidecar(&self, args: &[&str]) -> Run {
        hapax(self.fixture.path(), &[&["records", "settle", &self.id, "--applied", "--yes"], args].concat())
    }

    /// Settles it through the running sidecar.
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

    /// Checks that retries receive this, and that the service is not called again.
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
fn a_retry_receives_the_result_that_was_settled_in_the_store() {
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
fn a_retry_receives_the_result_that_was_settled_through_the_sidecar() {
    let it = Uncertain::start();
    std::fs::write(it.fixture.path().join("answer.xml"), "<order/>\n").unwrap();
    let args = ["--status", "402", "--body-file", "answer.xml", "--content-type", "application/xml"];
    it.settle_at_the_sidecar(&[&args[..], &["--reason", "seen at the bank"]].concat()).ended(0);
    it.replays(402, &[("content-type", "application/xml")], "<order/>\n");
    assert_eq!(it.shown()["state"], "failed");
}

#[test]
fn the_body_is_text_or_empty() {
    let it = Uncertain::start();
    it.settle_at_the_sidecar(&["--status", "204"]).ended(0);
    it.replays(204, &[], "");
    let it = Uncertain::start();
    it.settle_at_the_sidecar(&["--status", "200", "--body", "made", "--content-type", "text/plain"]).ended(0);
    it.replays(200, &[("content-type", "text/plain")], "made");
}

#[test]
fn invalid_responses_are_refused() {
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
fn a_body_above_the_limit_is_refused() {
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
fn a_result_without_a_status_is_warned_about() {
    let it = Uncertain::start();
    let run = it.settle_at_the_sidecar(&["--json-value", "7"]).ended(0);
    assert!(run.stderr.contains("give an answer with --status instead"), "{run:?}");
    assert_eq!(it.order().status(), 409);
}

const DAYS_30: &str = "[[route]]\npath = \"/orders\"\nretention = \"30d\"\n";

/// The retention of the record, in hours.
fn hours_kept(it: &Uncertain) -> u64 {
    let record = it.shown();
    let of = |member: &str| record[member].as_u64().unwrap();
    (of("expires_at_ms") - of("updated_at_ms")) / 3_600_000
}

#[test]
fn a_settled_record_has_the_retention_of_its_route() {
    let mut it = Uncertain::start_with(DAYS_30);
    let settled = it.settle_in_the_store(&["--status", "204"]).ended(0);
    assert!(settled.stderr.contains("for 30d retries"), "{settled:?}");
    assert_eq!(hours_kept(&it), 30 * 24);

    let it = Uncertain::start_with(DAYS_30);
    let settled = it.settle_at_the_sidecar(&["--status", "204"]).ended(0);
    assert!(settled.stderr.contains("for 30d retries"), "{settled:?}");
    assert_eq!(hours_kept(&it), 30 * 24);

    let it = Uncertain::start_with(DAYS_30);
    it.settle_at_the_sidecar(&["--status", "204", "--retention", "2h"]).ended(0);
    assert_eq!(hours_kept(&it), 2);
}

#[test]
fn a_command_finds_the_sidecar_that_owns_the_store() {
    let it = Uncertain::start_with(DAYS_30);
    let settled = it.settle_beside_the_sidecar(&["--status", "204", "--reason", "seen at the bank"]).ended(0);
    let listener = format!("asking its owner at http://{}", it.sidecar.as_ref().unwrap().admin());
    assert!(settled.stderr.contains(&listener), "{settled:?}");
    it.replays(204, &[], "");
    assert_eq!(hours_kept(&it), 30 * 24);
    let log = std::fs::read_to_string(it.fixture.store().join("audit.jsonl")).unwrap();
    assert!(log.contains("seen at the bank"), "{log}");
    hapax(it.fixture.path(), &["records", "delete", &it.id, "--yes"]).ended(0);
}

#[test]
fn the_command_for_an_unreachable_owner_is_printed() {
    let mut it = Uncertain::start();
    let listener = format!("http://{}", it.sidecar.as_ref().unwrap().admin());
    // The sidecar is killed, so its file remains, and another process opens the store.
    drop(it.sidecar.take());
    let held = it.fixture.open();
    let refused =
        it.settle_beside_the_sidecar(&["--status", "200", "--body", "it's"]).failed(5, "store-in-use");
    drop(held);
    let line = format!(
        "hapax records settle {} --applied --yes --status 200 --body 'it'\\''s' --admin {listener}",
        it.id
    );
    assert!(refused.stderr.contains(&line), "{refused:?}");
    // Without an owner there is no audit log for the reason.
    let args = ["records", "release", &it.id, "--yes", "--reason", "x"];
    hapax(it.fixture.path(), &args).failed(2, "input-invalid");
}

#[cfg(unix)]
#[test]
fn a_graceful_shutdown_removes_the_file_of_the_admin_listener() {
    let mut it = Uncertain::start();
    let file = it.fixture.store().join("admin.json");
    assert!(file.exists());
    let sidecar = it.sidecar.take().unwrap();
    sidecar.signal("TERM");
    assert_eq!(sidecar.ended().0, Some(0));
    assert!(!file.exists());
}
