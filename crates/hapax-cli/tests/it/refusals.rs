//! Refusals by the sidecar itself: the reason of uncertain records, and the route's shape of refusals.

use serde_json::Value;

use crate::binary::hapax;
use crate::fixture::{Fixture, KEY};
use crate::sidecar::{Message, Origin, Sidecar, ask};

/// A sidecar with this file, in front of this service.
fn serve(file: &str, url: &str) -> (Fixture, Sidecar) {
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", url]);
    (fixture, sidecar)
}

fn order(sidecar: &Sidecar) -> Message {
    ask(sidecar.address(), &format!("POST /orders\nIdempotency-Key: {KEY}"), "{}")
}

fn shown(fixture: &Fixture, id: &str) -> Value {
    hapax(fixture.path(), &["records", "show", id, "--json"]).ended(0).json()["record"].clone()
}

/// A URL without a server: its port was free a moment ago.
fn unreachable_url() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", free.local_addr().unwrap())
}

#[test]
fn x_07_the_reason_of_a_record_is_the_upstream_failure() {
    let (silent, _arrivals, _gate) = Origin::holding();
    let short = "HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\nhalf";
    let garbled = "SSH-2.0-OpenSSH_9.2\r\n\r\n";
    let declared = "HTTP/1.1 201 Created\r\nidempotency-outcome: uncertain\r\ncontent-length: 0\r\n\r\n";
    let gateway = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n";
    let answering = |answer: &'static str| {
        Origin::start(move |_, number| (number == 1 && !answer.is_empty()).then(|| answer.to_owned()))
    };
    for (name, origin, status, words) in [
        ("reset", answering(""), 502, "broke off before its answer"),
        ("timed_out", silent, 504, "did not answer in time"),
        ("no_answer", answering(garbled), 502, "instead of an answer that can be used"),
        ("declared", answering(declared), 201, "the handler said that it does not know"),
        ("answered", answering(gateway), 502, "the status of the answer leaves it open"),
    ] {
        let file =
            "[upstream_options]\nresponse = \"100ms\"\n[[route]]\npath = \"/**\"\nuncertain = [\"502\"]\n";
        let (fixture, sidecar) = serve(file, &origin.url());
        assert_eq!(order(&sidecar).status(), status, "{name}");
        let id = origin.seen()[0].header("idempotency-operation").unwrap().to_owned();
        let record = shown(&fixture, &id);
        assert_eq!((&record["state"], &record["reason"]), (&"uncertain".into(), &name.into()));
        let text = hapax(fixture.path(), &["records", "show", &id]).ended(0).stdout;
        assert!(text.contains(words), "{name}: {text}");
    }
    // The service closes the connection within its response.
    let origin = Origin::start(move |_, number| (number == 1).then(|| short.to_owned()));
    let file = "[upstream_options]\nbody_idle = \"100ms\"\n";
    let (fixture, sidecar) = serve(file, &origin.url());
    let answer = order(&sidecar);
    assert_eq!(answer.status(), 502);
    let id = answer.json()["operation"].as_str().unwrap().to_owned();
    assert_eq!(shown(&fixture, &id)["reason"], "truncated");
}

const OWN: &str = "[upstream_options]\nresponse = \"100ms\"\n\
                   [[route]]\npath = \"/**\"\nretry_hint = \"Stripe-Should-Retry\"\n";

/// Checks a refusal in the shape of the route, which names the record if there is one.
#[track_caller]
fn assert_own(answer: &Message, status: u16, code: &str, retry: &str) -> Value {
    assert_eq!(answer.status(), status, "{answer:?}");
    let document = answer.json();
    assert_eq!(document["type"], format!("https://hapax.dev/errors/{code}"));
    assert_eq!(document["status"], status);
    assert_eq!(answer.header("stripe-should-retry"), Some(retry), "{answer:?}");
    assert_eq!(answer.header("x-should-retry"), None, "{answer:?}");
    document
}

#[test]
fn e_04_refusals_of_the_sidecar_have_the_shape_of_the_route_and_name_the_record() {
    let (silent, _arrivals, _gate) = Origin::holding();
    let hangs_up = Origin::start(|_, _| None);
    let dead = unreachable_url();
    for (url, usual, chosen, code, retry) in [
        (hangs_up.url(), 502, "uncertain = 422", "uncertain", "false"),
        (silent.url(), 504, "uncertain = 422", "uncertain", "false"),
        (dead, 502, "upstream-unavailable = 422", "upstream-unavailable", "true"),
    ] {
        let (fixture, sidecar) = serve(OWN, &url);
        let document = assert_own(&order(&sidecar), usual, code, retry);
        let id = document["operation"].as_str().expect("the refusal names the record").to_owned();
        assert_eq!(document["instance"], format!("urn:hapax:record:{id}"));
        let shown = shown(&fixture, &id);
        let state = if code == "uncertain" { "uncertain" } else { "released" };
        assert_eq!(shown["state"], state);
        drop(sidecar);

        let file = format!("{OWN}statuses = {{ {chosen} }}\n");
        let (_fixture, sidecar) = serve(&file, &url);
        assert_own(&order(&sidecar), 422, code, retry);
        // Without a key there is no record, and the shape of the route applies nevertheless.
        let unkeyed = assert_own(&ask(sidecar.address(), "POST /orders", "{}"), 422, code, retry);
        assert_eq!(unkeyed.get("operation"), None);
    }
}

#[test]
fn e_04_refusals_at_the_connection_limit_have_the_shape_of_the_route() {
    let (holding, arrivals, _gate) = Origin::holding();
    let file = OWN.replace("response = \"100ms\"", "connections_max = 1\nconnection_wait = \"50ms\"");
    let (_fixture, sidecar) = serve(&file, &holding.url());
    let mut first = crate::sidecar::Client::to(sidecar.address());
    first.send("POST /orders\nIdempotency-Key: another", "{}");
    arrivals.recv().unwrap();
    assert!(assert_own(&order(&sidecar), 503, "upstream-unavailable", "true")["operation"].is_string());
}
