//! Alert rules and dashboard: Prometheus accepts them, and all their metrics exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{folder, text, tool, words};
use crate::fixture::{Fixture, KEY};
use crate::sidecar::{Origin, Sidecar, ask, reply};

const ALERTS: &str = "prometheus/alerts.yml";
const ALERT_TESTS: &str = "prometheus/alerts.test.yml";
const DASHBOARD: &str = "grafana/hapax.json";

fn promtool(args: &[&str]) {
    tool("promtool", "prometheus", args).ended(0);
}

#[test]
fn prometheus_accepts_the_rules_and_their_tests_pass() {
    for (verb, what, file) in [
        ("check", "rules", ALERTS),
        ("test", "rules", ALERT_TESTS),
        ("check", "config", "prometheus/prometheus.yml"),
    ] {
        promtool(&[verb, what, folder().join(file).to_str().unwrap()]);
    }
}

#[test]
fn every_alert_fires_in_the_tests_of_the_rules() {
    let (alerts, tests) = (text(ALERTS), text(ALERT_TESTS));
    let named: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(named.len() > 5, "{named:?}");
    for alert in named {
        assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert}");
    }
}

/// The queries of the dashboard, with values for the variables of Grafana.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let written = targets.map(|target| target["expr"].as_str().unwrap());
    written.map(|query| query.replace("$__rate_interval", "5m").replace("$job", ".*")).collect()
}

#[test]
fn prometheus_accepts_every_query_of_the_dashboard() {
    let queries = queries();
    assert!(queries.len() > 10, "{queries:?}");
    let rules: Vec<Value> =
        queries.iter().map(|query| json!({ "record": "a:query", "expr": query })).collect();
    // YAML includes JSON.
    let file = Fixture::bare();
    let path = file.path().join("queries.yml");
    fs::write(&path, json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string()).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()]);
}

#[test]
fn metrics_of_a_shared_store_are_not_summed() {
    let queried: Vec<String> =
        queries().into_iter().filter(|query| query.contains("hapax_uncertain")).collect();
    assert!(queried.len() > 1, "{queried:?}");
    assert!(queried.iter().all(|query| query.starts_with("max(")), "{queried:?}");
    let alerts = text(ALERTS);
    assert!(!alerts.lines().any(|line| line.contains("sum") && line.contains("hapax_uncertain")));
}

/// The metrics in a text. The series of a histogram count as one metric.
fn metrics(text: &str) -> BTreeSet<&str> {
    words(text, "hapax_")
        .map(|name| {
            let parts = ["_bucket", "_sum", "_count"];
            parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name)
        })
        .collect()
}

fn source(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// The source with the names of the library's metrics.
fn observe() -> String {
    source("../hapax/src/observe.rs")
}

#[test]
fn the_dashboard_shows_every_metric_and_no_query_has_an_unknown_one() {
    let sources = observe() + &source("src/telemetry.rs") + &source("../hapax-admin/src/metric_names.rs");
    let is_constant = |line: &&str| line.starts_with("pub const ") || line.starts_with("pub(crate) const ");
    let constants = sources.lines().filter(is_constant).collect::<String>();
    let known = metrics(&constants);
    assert!(known.contains("hapax_requests_total"), "{known:?}");
    assert_eq!(metrics(&queries().join(" ")), known);
    let alerts = text(ALERTS);
    let queried = metrics(&alerts);
    assert!(queried.is_subset(&known), "{queried:?}");
    assert!(queried.len() > 3, "{queried:?}");
}

#[test]
fn all_outcomes_in_queries_exist() {
    let (observe, queried) = (observe(), text(ALERTS) + &queries().join("\n"));
    let mut found = 0;
    for matcher in ["outcome=\"", "outcome=~\"", "outcome!=\""] {
        for after in queried.split(matcher).skip(1) {
            for outcome in after.split('"').next().unwrap().split('|') {
                assert!(observe.contains(&format!("=> \"{outcome}\"")), "{outcome}");
                found += 1;
            }
        }
    }
    assert!(found > 5, "{found}");
}

#[test]
fn a_running_sidecar_exports_the_metrics_of_the_dashboard() {
    let origin = Origin::start(|_, _| reply(201, "made"));
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url(), "--store", "memory:"]);
    for _ in 0..2 {
        let answer = ask(sidecar.address(), &format!("POST /orders\nIdempotency-Key: {KEY}"), "{}");
        assert_eq!(answer.status(), 201);
    }
    let exported = ask(sidecar.admin(), "GET /metrics", "").body;
    let shown = queries().join(" ");
    let (names, shown) = (metrics(&exported), metrics(&shown));
    assert!(names.is_subset(&shown), "{names:?}");
    for metric in [
        "hapax_requests_total",
        "hapax_claim_seconds",
        "hapax_complete_seconds",
        "hapax_in_progress",
        "hapax_ready",
    ] {
        assert!(names.contains(metric), "{metric} is not in {exported}");
    }
    for part in ["outcome=\"ran\"} 1", "outcome=\"replayed\"} 1", "hapax_claim_seconds_bucket{le="] {
        assert!(exported.contains(part), "{part} is not in {exported}");
    }
}
