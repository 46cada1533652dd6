use serde_json::{Value, json};

use super::*;
use crate::http::HttpPolicy;

/// Checks the settings of a dialect: `differs` lists all options that differ from the default.
fn check(dialect: Dialect, differs: Value) {
    let mut expected = json!(HttpPolicy::default().settings());
    expected["dialect"] = json!(dialect.name());
    for (option, value) in differs.as_object().unwrap() {
        assert_ne!(expected[option], *value, "{option} has its default");
        expected[option] = value.clone();
    }
    assert_eq!(json!(HttpPolicy::of(dialect).settings()), expected);
}

const RELEASED: [&str; 12] =
    ["307", "308", "401", "403", "407", "408", "412", "421", "423", "425", "428", "429"];

#[test]
fn x_11_p_01_the_default() {
    check(Dialect::Default, json!({}));
    let settings = HttpPolicy::default().settings();
    let settings = json!(settings);
    assert_eq!(settings["pin"], json!(["2xx", "3xx", "4xx"]));
    let released: Vec<_> = RELEASED.into_iter().chain(["5xx"]).collect();
    assert_eq!(settings["release"], json!(released));
    assert_eq!(settings["uncertain"], json!(["502", "504"]));
    assert_eq!(settings["methods"], json!(["POST", "PUT", "PATCH"]));
    assert_eq!(settings["header"], "idempotency-key");
    assert_eq!(settings["replay_marker"], "x-idempotent-replayed");
    assert_eq!(settings["retention"], "1d");
    assert_eq!(settings["wait"], "0s");
    assert_eq!(settings["statuses"], json!({}));
}

#[test]
fn p_01_ietf() {
    check(Dialect::Ietf, json!({ "key_spelling": "quoted", "replay_marker": "idempotent-replayed" }));
}

#[test]
fn x_11_p_01_stripe_v1() {
    check(
        Dialect::StripeV1,
        json!({
            "methods": ["POST"],
            "key_spelling": "raw",
            "endpoint": "fingerprint",
            "pin": ["2xx", "3xx", "4xx", "5xx"],
            "release": ["401", "429"],
            "uncertain": [],
            "statuses": { "key-reused": 400 },
            "replay_marker": "idempotent-replayed",
            "retry_hint": "stripe-should-retry",
            "refusals": "stripe",
        }),
    );
}

#[test]
fn x_11_p_01_stripe_v2() {
    check(
        Dialect::StripeV2,
        json!({
            "methods": ["POST", "DELETE"],
            "key_spelling": "raw",
            "pin": ["2xx"],
            "release": ["3xx", "4xx", "5xx"],
            "retention": "30d",
            "replay_marker": "idempotent-replayed",
            "retry_hint": "stripe-should-retry",
            "refusals": "stripe",
        }),
    );
}

#[test]
fn x_11_p_01_adyen() {
    check(
        Dialect::Adyen,
        json!({
            "methods": ["POST"],
            "key_spelling": "raw",
            "key_length_max": 64,
            "pin": ["2xx", "3xx", "4xx", "5xx"],
            "release": RELEASED,
            "uncertain": [],
            "retention": "7d",
            "echo_key": true,
        }),
    );
}

#[test]
fn x_11_p_01_success_only() {
    check(Dialect::SuccessOnly, json!({ "pin": ["2xx"], "release": ["3xx", "4xx", "5xx"] }));
}

#[test]
fn x_11_p_01_oasis() {
    check(
        Dialect::Oasis,
        json!({
            "header": "repeatability-request-id",
            "key_from": ["header:repeatability-request-id"],
            "first_sent": "repeatability-first-sent",
            "first_sent_window": "5m",
            "release": ["307", "308", "5xx"],
            "statuses": { "key-reused": 400 },
        }),
    );
    assert_eq!(Dialect::Oasis.result_header().unwrap(), "repeatability-result");
}

#[test]
fn p_01_square() {
    check(
        Dialect::Square,
        json!({
            "key_from": ["header:idempotency-key", "json:/idempotency_key"],
            "key_spelling": "raw",
            "statuses": { "key-reused": 400 },
        }),
    );
}

#[test]
fn p_01_dialects_are_found_by_name() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.name().parse(), Ok(dialect));
        assert_eq!(json!(dialect), dialect.name());
    }
    let error = "stripe".parse::<Dialect>().unwrap_err().to_string();
    assert!(Dialect::ALL.iter().all(|dialect| error.contains(dialect.name())), "{error}");
}
