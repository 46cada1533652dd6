use std::str::FromStr as _;

use hapax_core::{Key, Scope, ScopedKey};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

use super::first_runs::FirstRuns;
use super::options::{Collector, Ratio};
use super::*;

#[test]
fn the_oldest_first_run_is_dropped() {
    let record = |name: &str| ScopedKey::new(Scope::new("o"), &Key::parse(name.as_bytes()).unwrap()).id;
    let span = |id: u64| {
        let state = TraceState::from_str("").unwrap_or_default();
        SpanContext::new(TraceId::from(1u128), SpanId::from(id), TraceFlags::SAMPLED, false, state)
    };
    let first_runs = FirstRuns::new(2);
    for (name, id) in [("key-a", 1), ("key-b", 2), ("key-a", 3), ("key-c", 4)] {
        first_runs.ran(record(name), span(id));
    }
    for (name, expected) in [("key-a", None), ("key-b", Some(2)), ("key-c", Some(4))] {
        let found = first_runs.of(&record(name)).map(|found| found.span_id());
        assert_eq!(found, expected.map(SpanId::from), "{name}");
    }
    let none = FirstRuns::new(0);
    none.ran(record("key-a"), span(1));
    assert_eq!(none.of(&record("key-a")), None);
}

#[test]
fn the_url_of_a_collector_contains_no_secrets() {
    for (text, expected) in [
        ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/traces")),
        ("https://collector/", Some("https://collector/v1/traces")),
        ("http://collector/otlp", Some("http://collector/otlp/v1/traces")),
        ("http://user:pass@collector", None),
        ("http://collector/?token=1", None),
        ("collector:4318", None),
        ("", None),
    ] {
        let collector = Collector::try_from(text.to_owned());
        assert_eq!(collector.ok().map(|collector| collector.of_traces()).as_deref(), expected, "{text}");
    }
}

#[test]
fn a_ratio_is_between_0_and_1() {
    for (ratio, expected) in
        [(0.0, true), (0.25, true), (1.0, true), (-0.1, false), (1.1, false), (f64::NAN, false)]
    {
        assert_eq!(Ratio::try_from(ratio).is_ok(), expected, "{ratio}");
    }
}

#[test]
fn unknown_methods_are_replaced() {
    assert_eq!(method(&http::Method::POST), "POST");
    assert_eq!(method(&http::Method::from_bytes(b"SECRET").unwrap()), "_OTHER");
}
