//! Logs and metrics of a running sidecar: records that become uncertain, outages, and refusals.

use serde_json::Value;

use crate::fixture::{Fixture, KEY};
use crate::sidecar::{Client, Message, Origin, Sidecar, ask, reply};

const LOG: &str = "[log]\nformat = \"json\"\nrequests = true\n[upstream_options]\nresponse = \"100ms\"\n";

fn serve(file: &str, url: &str) -> (Fixture, Sidecar) {
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), format!("{LOG}{file}")).unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", url]);
    (fixture, sidecar)
}

fn order(sidecar: &Sidecar, name: &str) -> Message {
    ask(sidecar.address(), &format!("POST /orders\nIdempotency-Key: {KEY}-{name}"), "{}")
}

fn line(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// All log lines, after the end of the process.
fn ended(sidecar: Sidecar) -> Vec<Value> {
    sidecar.signal("TERM");
    sidecar.ended().1.iter().map(|text| line(text)).collect()
}

/// The lines about records that become uncertain.
fn uncertain(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["cause"].is_string()).collect()
}

#[test]
fn a_record_that_becomes_uncertain_has_one_warning() {
    let (silent, _arrivals, _gate) = Origin::holding();
    for (origin, cause) in [
        (Origin::start(|_, _| None), "reset"),
        (silent, "timed_out"),
        (Origin::start(|_, _| reply(502, "")), "answered"),
        (
            Origin::start(|_, _| {
                Some("HTTP/1.1 200 OK\r\nidempotency-outcome: uncertain\r\ncontent-length: 0\r\n\r\n".into())
            }),
            "declared",
        ),
    ] {
        let route = "[[route]]\npath = \"/orders\"\nuncertain = [\"502\"]\n";
        let (_fixture, sidecar) = serve(route, &origin.url());
        for _ in 0..3 {
            order(&sidecar, "a");
        }
        let id = origin.seen()[0].header("idempotency-operation").unwrap().to_owned();
        let lines = ended(sidecar);
        let [entry] = &uncertain(&lines)[..] else { panic!("{cause}: {lines:#?}") };
        let address = origin.address.to_string();
        for (name, value) in
            [("level", "WARN"), ("cause", cause), ("id", &id), ("route", "/orders"), ("upstream", &address)]
        {
            assert_eq!(entry[name], value, "{entry}");
        }
    }
}

#[test]
fn a_run_that_takes_too_long_has_one_warning() {
    let (silent, arrivals, gate) = Origin::holding();
    let fixture = Fixture::bare();
    let file =
        "[log]\nformat = \"json\"\n[[route]]\npath = \"/orders\"\nrun_max = \"50ms\"\nlease = \"100ms\"\n";
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &silent.url()]);
    let mut first = Client::to(sidecar.address());
    first.send(&format!("POST /orders\nIdempotency-Key: {KEY}-a"), "{}");
    arrivals.recv().unwrap();
    let entry = line(&sidecar.logged("run_max"));
    assert_eq!((&entry["level"], &entry["cause"]), (&"WARN".into(), &"lapsed".into()), "{entry}");
    assert_eq!(
        (&entry["route"], &entry["upstream"]),
        (&"/orders".into(), &silent.address.to_string().into())
    );
    // Retried until it has lapsed.
    while order(&sidecar, "a").json()["type"] != "https://hapax.dev/errors/uncertain" {}
    drop(gate);
    first.answer();
    let lines = ended(sidecar);
    assert_eq!(uncertain(&lines).len(), 1, "{lines:#?}");
}

#[test]
fn claims_of_a_process_that_was_killed_have_one_warning_each() {
    let (silent, arrivals, _gate) = Origin::holding();
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), "[log]\nformat = \"json\"\n").unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &silent.url()]);
    let mut open: Vec<Client> = Vec::new();
    for name in ["a", "b"] {
        let mut client = Client::to(sidecar.address());
        client.send(&format!("POST /orders\nIdempotency-Key: {KEY}-{name}"), "{}");
        open.push(client);
        arrivals.recv().unwrap();
    }
    sidecar.signal("KILL");
    sidecar.ended();
    let again = Sidecar::start(&fixture, &["--upstream", &silent.url()]);
    assert_eq!(order(&again, "a").status(), 409);
    let lines = ended(again);
    let causes: Vec<_> = uncertain(&lines).iter().map(|line| line["cause"].clone()).collect();
    assert_eq!(causes, ["restarted", "restarted"], "{lines:#?}");
}

#[test]
fn an_outage_of_the_upstream_is_logged_once_and_counted() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let (_fixture, mut sidecar) = serve("", &format!("http://{address}"));
    for _ in 0..3 {
        assert_eq!(order(&sidecar, "a").status(), 502);
        assert_eq!(ask(sidecar.address(), "GET /", "").status(), 502);
    }
    let begins = line(&sidecar.logged("the upstream is unreachable"));
    assert_eq!(begins["level"], "WARN");
    let metrics = ask(sidecar.admin(), "GET /metrics", "").body;
    for entry in [
        "hapax_requests_total{surface=\"http\",route=\"*\",outcome=\"unreachable\"} 3\n",
        "hapax_request_seconds_count{outcome=\"unreachable\"} 6\n",
    ] {
        assert!(metrics.contains(entry), "{entry} is not in {metrics}");
    }
    let _origin = Origin::start_at(address, |_, _| reply(200, "back"));
    let ends = loop {
        assert_eq!(ask(sidecar.address(), "GET /", "").status(), 200);
        if let Some(ends) = sidecar.logged_so_far("the upstream is reachable again") {
            break line(&ends);
        }
    };
    assert_eq!(ends["failures"], 6, "{ends}");
    let lines = ended(sidecar);
    for entry in ["the upstream is unreachable", "the upstream is reachable again"] {
        assert_eq!(lines.iter().filter(|line| line["message"] == entry).count(), 1, "{lines:#?}");
    }
}

#[test]
fn the_access_log_has_the_code_of_a_refusal() {
    let origin = Origin::start(|_, _| reply(201, "made"));
    let (_fixture, mut sidecar) = serve("[[route]]\npath = \"/**\"\nkey = \"required\"\n", &origin.url());
    let address = sidecar.address();
    for (head, body, code) in [
        ("POST /orders", "{}", Some("key-missing")),
        ("POST /orders\nIdempotency-Key: a", "{\"n\":1}", None),
        ("POST /orders\nIdempotency-Key: a", "{\"n\":2}", Some("key-reused")),
    ] {
        ask(address, head, body);
        let entry = line(&sidecar.logged("hapax::requests"));
        assert_eq!(entry.get("problem").and_then(Value::as_str), code, "{entry}");
    }
}

#[test]
fn a_warning_at_the_start_is_logged_once_for_all_its_routes() {
    let route = |path: &str, more: &str| format!("[[route]]\npath = \"{path}\"\n{more}");
    let pass = "on_store_error = \"pass\"\n";
    let file = route("/a", pass) + &route("/b", pass) + &route("/c", &format!("key = \"off\"\n{pass}"));
    let origin = Origin::start(|_, _| reply(201, "made"));
    let (_fixture, sidecar) = serve(&file, &origin.url());
    let lines = ended(sidecar);
    let warnings: Vec<_> =
        lines.iter().filter(|line| line["level"] == "WARN").map(|line| line["message"].to_string()).collect();
    let passing: Vec<_> = warnings.iter().filter(|warning| warning.contains("on_store_error")).collect();
    let [passing] = &passing[..] else { panic!("{warnings:#?}") };
    assert!(passing.contains("/a /b: on_store_error"), "{passing}");
    for (index, warning) in warnings.iter().enumerate() {
        assert!(!warnings[..index].contains(warning), "{warning} is logged twice: {warnings:#?}");
    }
}
