//! `hapax serve`: requests through the sidecar, its start, its logs and metrics.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{command, hapax, run};
use crate::fixture::{Fixture, HOUR, KEY};
use crate::sidecar::{Client, Origin, Sidecar, ask, reply};

const ORDER: &str = "{\"item\":\"book\"}";

/// Longer than everything here takes.
const TIMEOUT: Duration = Duration::from_secs(20);

fn keyed(name: &str) -> String {
    format!("POST /orders\nIdempotency-Key: {KEY}-{name}")
}

#[test]
fn a_retry_is_replayed_and_the_upstream_receives_the_operation() {
    let origin = Origin::start(|_, number| reply(201, &format!("order {number}")));
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let head = keyed("a") + "\nX-Request-Id: from-outside\nIdempotency-Operation: made-up";
    let first = ask(sidecar.address(), &head, ORDER);
    assert_eq!((first.status(), first.body.as_str()), (201, "order 1"));
    assert_eq!(first.header("x-request-id"), Some("from-outside"));
    let second = ask(sidecar.address(), &keyed("a"), ORDER);
    assert_eq!((second.status(), second.body.as_str()), (201, "order 1"));
    assert_eq!(second.header("x-idempotent-replayed"), Some("true"));
    assert_ne!(second.header("x-request-id"), Some("from-outside"));
    let plain = ask(sidecar.address(), "POST /orders\nIdempotency-Attempt: 9", ORDER);
    assert_eq!(plain.body, "order 2");

    let [protected, passed] = &origin.seen()[..] else { panic!("{:?}", origin.seen()) };
    let id = protected.header("idempotency-operation").unwrap();
    assert_eq!(protected.header("idempotency-attempt"), Some("1"));
    assert_eq!(protected.header("x-request-id"), Some("from-outside"));
    assert_eq!(passed.header("idempotency-operation"), None);
    assert_eq!(passed.header("idempotency-attempt"), None);
    let shown = hapax(fixture.path(), &["records", "show", id, "--json"]).ended(0).json();
    assert_eq!(shown["record"]["state"], "completed");
}

#[test]
fn m_05_a_route_that_is_off_is_off_for_every_method() {
    let origin = Origin::start(|_, number| reply(200, &number.to_string()));
    let fixture = Fixture::bare();
    let file = "[[route]]\npath = \"/internal/**\"\nkey = \"off\"\n\n\
                [[route]]\npath = \"/**\"\nmethods = [\"POST\", \"DELETE\", \"MKCOL\"]\n";
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    for (method, path, runs) in [
        ("POST", "/internal/a", 2),
        ("DELETE", "/internal/a", 2),
        ("MKCOL", "/internal/a", 2),
        ("POST", "/orders/1", 1),
        ("DELETE", "/orders/1", 1),
    ] {
        let before = origin.seen().len();
        for _ in 0..2 {
            let head = format!("{method} {path}\nIdempotency-Key: {KEY}");
            assert_eq!(ask(sidecar.address(), &head, "").status(), 200);
        }
        assert_eq!(origin.seen().len() - before, runs, "{method} {path}");
    }
}

#[test]
fn m_01_the_methods_of_a_route_are_covered_on_its_paths() {
    let origin = Origin::start(|_, number| reply(200, &number.to_string()));
    let fixture = Fixture::bare();
    let file = "[[route]]\npath = \"/payments/**\"\nmethods = [\"POST\"]\nkey = \"required\"\n\n\
                [[route]]\npath = \"/payments/{id}\"\nmethods = [\"DELETE\"]\n";
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    for (method, path, runs) in [
        ("POST", "/payments/7", 1),
        ("DELETE", "/payments/7", 1),
        ("PUT", "/payments/7", 2),
        ("DELETE", "/payments/7/refunds", 2),
        ("PUT", "/orders/7", 1),
    ] {
        let before = origin.seen().len();
        for _ in 0..2 {
            let head = format!("{method} {path}\nIdempotency-Key: {KEY}");
            assert_eq!(ask(sidecar.address(), &head, "").status(), 200);
        }
        assert_eq!(origin.seen().len() - before, runs, "{method} {path}");
    }
}

#[test]
fn m_01_an_ambiguous_path_bypasses_no_route() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let fixture = Fixture::bare();
    let file = "[[route]]\npath = \"/v1/payments/**\"\nkey = \"required\"\n";
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let key = format!("\nIdempotency-Key: {KEY}");
    for (path, key) in
        [("/v1//payments", ""), ("/v1/%2e%2e/v1/payments", ""), ("/v1/payments;x=1", &key), ("/a//b", &key)]
    {
        let refused = ask(sidecar.address(), &format!("POST {path}{key}"), ORDER);
        assert_eq!(refused.status(), 400, "{path}");
        assert_eq!(refused.json()["type"], "https://hapax.dev/errors/path-ambiguous", "{path}");
        assert_eq!(refused.header("x-request-id").map(str::len), Some(32), "{path}");
    }
    assert!(origin.seen().is_empty());
    assert_eq!(ask(sidecar.address(), "POST /a//b/../c;d", ORDER).status(), 200);
    assert_eq!(origin.seen()[0].first_line, "POST /a//b/../c;d HTTP/1.1", "it is forwarded unchanged");
}

#[test]
fn without_an_upstream_the_start_fails() {
    let fixture = Fixture::bare();
    let refused = hapax(fixture.path(), &["serve"]).failed(2, "config-invalid");
    assert!(refused.stderr.contains("--upstream") && refused.stderr.contains("--demo"), "{refused:?}");
    assert!(!fixture.store().exists());
    hapax(fixture.path(), &["serve", "--demo", "--log-level", "loud=very"]).failed(2, "config-invalid");
    hapax(fixture.path(), &["serve", "--upstream", "ftp://a"]).failed(2, "config-invalid");
}

#[test]
fn the_start_fails_if_the_audit_log_cannot_be_opened() {
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax-audit"), "").unwrap();
    let mut typed = command(fixture.path());
    typed.args(["serve", "--demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let refused = run(typed.env("HAPAX_ADMIN_AUDIT_DIR", "hapax-audit")).failed(1, "audit-failed");
    assert!(refused.stderr.contains("cannot open the audit log in hapax-audit"), "{refused:?}");
    assert!(refused.stderr.contains("HAPAX_ADMIN_AUDIT_DIR"), "{refused:?}");
}

#[test]
fn an_address_in_use_is_no_configuration_error() {
    let fixture = Fixture::bare();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for place in ["--listen", "--admin"] {
        let other = if place == "--listen" { "--admin" } else { "--listen" };
        let args = ["serve", "--demo", "--store", "memory:", place, &address, other, "127.0.0.1:0"];
        // The service manager restarts the sidecar after this exit code.
        hapax(fixture.path(), &args).failed(1, "listen-failed");
    }
}

#[test]
fn unsafe_settings_are_logged_at_the_start() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let fixture = Fixture::bare();
    let file = "[store]\nurl = \"memory:\"\n[[route]]\npath = \"/a\"\non_store_error = \"pass\"\n";
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    sidecar.logged("loses all records");
    sidecar.logged("/a: on_store_error = \"pass\"");
    sidecar.logged("callers are identified by a credential");
}

#[test]
fn the_promise_is_logged_at_the_start() {
    let fixture = Fixture::bare();
    let mut sidecar = Sidecar::start(&fixture, &["--demo"]);
    let line = sidecar.logged("the promise of");
    assert!(line.contains("INFO") && line.contains("file:./hapax-data: at most once"), "{line}");
    assert!(sidecar.start["promise"].as_str().unwrap().starts_with("at most once"), "{}", sidecar.start);
    drop(sidecar);

    let mut sidecar = Sidecar::start(&fixture, &["--demo", "--store", "memory:"]);
    assert!(sidecar.logged("the promise of").contains("memory:: de-duplication inside one living process"));
}

#[cfg(unix)]
#[test]
fn routes_are_reloaded_without_closing_a_connection() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let fixture = Fixture::bare();
    let file = fixture.path().join("hapax.toml");
    let route = |key: &str| format!("[[route]]\npath = \"/orders\"\nkey = \"{key}\"\n");
    std::fs::write(&file, route("optional")).unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let mut client = Client::to(sidecar.address());
    assert_eq!(client.ask("POST /orders", ORDER).status(), 200);

    std::fs::write(&file, route("required") + "[drain]\nlimit = \"1s\"\n").unwrap();
    sidecar.signal("HUP");
    sidecar.logged("takes effect after a restart");
    sidecar.logged("routes reloaded");
    assert_eq!(client.ask("POST /orders", ORDER).status(), 400);

    let keeps_too_much = route("optional") + "outcome_bytes_max = 67108865\n";
    for (wrong, place) in [(route("sometimes"), "hapax.toml:3:7: "), (keeps_too_much, "hapax.toml:4:21: ")] {
        std::fs::write(&file, wrong).unwrap();
        sidecar.signal("HUP");
        let logged = sidecar.logged("reload failed; the routes are unchanged");
        assert!(logged.contains(place), "{logged}");
        assert_eq!(client.ask("POST /orders", ORDER).status(), 400);
    }
    assert_eq!(origin.seen().len(), 1);
}

#[cfg(unix)]
#[test]
fn a_reload_logs_the_protection_that_it_removes() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let fixture = Fixture::bare();
    let file = fixture.path().join("hapax.toml");
    let orders = "[[route]]\npath = \"/orders\"\nkey = \"required\"\n";
    let whole = format!("{orders}[[route]]\npath = \"/payments/**\"\nkey = \"required\"\n");
    std::fs::write(&file, &whole).unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);

    // A file that is being rewritten or has been moved.
    for empty in ["", "\n# nothing yet\n"] {
        std::fs::write(&file, empty).unwrap();
        sidecar.signal("HUP");
        let logged = sidecar.logged("reload failed; the routes are unchanged");
        assert!(logged.contains("ERROR") && logged.contains("hapax.toml is empty"), "{logged}");
        assert_eq!(ask(sidecar.address(), "POST /payments/1", ORDER).status(), 400);
    }
    std::fs::remove_file(&file).unwrap();
    sidecar.signal("HUP");
    let logged = sidecar.logged("reload failed; the routes are unchanged");
    assert!(logged.contains("hapax.toml no longer exists"), "{logged}");
    assert_eq!(ask(sidecar.address(), "POST /payments/1", ORDER).status(), 400);

    std::fs::write(&file, orders).unwrap();
    sidecar.signal("HUP");
    for part in ["the route was removed", "key = \"required\" was removed"] {
        let logged = sidecar.logged(part);
        assert!(logged.contains("WARN") && logged.contains("this reload removes protection"), "{logged}");
        assert!(logged.contains("POST,PUT,PATCH /payments/**") && !logged.contains("/orders"), "{logged}");
    }
    sidecar.logged("routes reloaded");
    assert_eq!(ask(sidecar.address(), "POST /payments/1", ORDER).status(), 200);
    assert_eq!(ask(sidecar.address(), "POST /orders", ORDER).status(), 400);
}

#[cfg(unix)]
#[test]
fn a_reload_keeps_the_usage_of_limits() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), "[defaults]\nattempts_per_key = \"2/1h\"\n").unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    for status in [200, 200, 429] {
        assert_eq!(ask(sidecar.address(), &keyed("a"), ORDER).status(), status);
    }
    sidecar.signal("HUP");
    sidecar.logged("routes reloaded");
    assert_eq!(ask(sidecar.address(), &keyed("a"), ORDER).status(), 429);
    assert_eq!(ask(sidecar.address(), &keyed("b"), ORDER).status(), 200);
}

#[test]
fn uncertain_records_are_measured_without_a_sweep() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.uncertain("a").await;
    });
    let origin = Origin::start(|_, _| reply(200, "done"));
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let since = Instant::now();
    loop {
        let metrics = ask(sidecar.admin(), "GET /metrics", "").body;
        assert!(metrics.contains("\nhapax_ready 1\n"), "{metrics}");
        if metrics.contains("\nhapax_uncertain 1\n") {
            break;
        }
        assert!(since.elapsed() < TIMEOUT, "{metrics}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn requests_are_measured_and_written_to_the_access_log() {
    let origin = Origin::start(|_, _| reply(201, "made"));
    let fixture = Fixture::bare();
    let file = "[log]\nrequests = true\nformat = \"json\"\nlevel = \"error\"\n[store]\nurl = \"memory:\"";
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let secret = "canary-query-4e1d";
    for (head, outcome, record) in [
        (keyed("a") + "\nX-Request-Id: of-the-caller", "ran", true),
        (keyed("a"), "replayed", true),
        (format!("POST /orders?{secret}"), "passed", false),
        (format!("GET /orders?{secret}"), "passed", false),
    ] {
        let answer = ask(sidecar.address(), &head, ORDER);
        let line: Value = serde_json::from_str(&sidecar.logged("hapax::requests")).unwrap();
        assert_eq!(line["request_id"], answer.header("x-request-id").unwrap());
        assert_eq!((&line["outcome"], &line["status"]), (&outcome.into(), &201.into()), "{line}");
        assert_eq!(line["method"], head.split(' ').next().unwrap());
        assert!(line["ms"].as_f64().unwrap() > 0.0, "{line}");
        assert_eq!((line["record"].is_string(), line["route"].is_string()), (record, record), "{line}");
        for canary in [KEY, secret, "book", "/orders"] {
            assert!(!line.to_string().contains(canary), "{line}");
        }
    }
    let metrics = ask(sidecar.admin(), "GET /metrics", "").body;
    for (outcome, count) in [("ran", 1), ("replayed", 1), ("passed", 2)] {
        let line = format!("hapax_request_seconds_count{{outcome=\"{outcome}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
}

/// The HTTP/2 preface, SETTINGS, and a complete request: GET, http, `/`, and the authority `a`.
const HTTP2_GET: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x01\x01a";

#[test]
fn a_disconnected_client_is_in_the_access_log() {
    let (origin, arrivals, _gate) = Origin::holding();
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), "[log]\nrequests = true\nformat = \"json\"").unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url(), "--store", "memory:"]);
    // Over HTTP/1, a disconnected client cannot be distinguished from a half-closed one.
    let mut client = TcpStream::connect(sidecar.address()).unwrap();
    client.write_all(HTTP2_GET).unwrap();
    arrivals.recv().unwrap();
    drop(client);
    let line: Value = serde_json::from_str(&sidecar.logged("hapax::requests")).unwrap();
    assert_eq!((&line["outcome"], &line["status"]), (&"gone".into(), &Value::Null), "{line}");
}

#[test]
fn keys_are_in_neither_logs_nor_metrics() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let fixture = Fixture::bare();
    let args = ["--upstream", &origin.url(), "--log-format", "json", "--log-level", "trace"];
    let mut sidecar = Sidecar::start(&fixture, &args);
    for _ in 0..2 {
        ask(sidecar.address(), &keyed("secret"), ORDER);
    }
    let metrics = ask(sidecar.admin(), "GET /metrics", "").body;
    assert!(metrics.contains("outcome=\"replayed\"} 1"), "{metrics}");
    assert!(metrics.contains("hapax_claim_seconds_bucket{le=\"0.001\"}"), "{metrics}");
    assert_eq!(ask(sidecar.admin(), "GET /readyz", "").status(), 200);
    assert!(!metrics.contains(KEY), "{metrics}");
    #[cfg(unix)]
    {
        sidecar.signal("INT");
        sidecar.logged("shutdown requested; draining");
        let (code, log) = sidecar.ended();
        assert_eq!(code, Some(0));
        for line in log {
            assert!(!line.contains(KEY) && !line.contains("book"), "{line}");
            serde_json::from_str::<serde_json::Value>(&line).unwrap_or_else(|_| panic!("{line}"));
        }
    }
}
