use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::http::HttpPolicy;
use crate::http::rules::Rules;
use crate::policy::Policy;

fn settings(options: &Value) -> Settings {
    serde_json::from_value(options.clone()).unwrap_or_else(|error| panic!("{options}: {error}"))
}

fn rules(policy: &HttpPolicy) -> Rules {
    policy.rules(&Policy::default())
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// Every option with a value that differs from all dialects, and with the options that it needs.
const OPTIONS: &[(&str, &str)] = &[
    ("dialect", r#"{ "dialect": "adyen" }"#),
    ("key", r#"{ "key": "required" }"#),
    ("methods", r#"{ "methods": ["DELETE"] }"#),
    ("header", r#"{ "header": "x-key" }"#),
    (
        "key_from",
        r#"{ "key_from": ["header:idempotency-key", "query:requestId", "json:/request_id", "form:Token"] }"#,
    ),
    ("key_derive", r#"{ "key_derive": ["/order_id"] }"#),
    ("key_derive_window", r#"{ "key_derive": ["/order_id"], "key_derive_window": "10m" }"#),
    ("key_spelling", r#"{ "key_spelling": "quoted" }"#),
    ("key_spelling", r#"{ "key_spelling": "raw" }"#),
    ("key_length_min", r#"{ "key_length_min": 8 }"#),
    ("key_length_max", r#"{ "key_length_max": 100 }"#),
    ("key_format", r#"{ "key_format": "ulid" }"#),
    ("key_pattern", r#"{ "key_pattern": "[a-z]+" }"#),
    ("first_sent", r#"{ "first_sent": "x-first-sent" }"#),
    ("first_sent_window", r#"{ "first_sent": "x-first-sent", "first_sent_window": "10m" }"#),
    ("namespace", r#"{ "namespace": "blue" }"#),
    ("principal", r#"{ "principal": "none" }"#),
    ("principal", r#"{ "principal": ["header:x-api-key", "cookie:sid"] }"#),
    ("credential_headers", r#"{ "credential_headers": ["x-a", "x-b"] }"#),
    ("principal_verified", r#"{ "principal": "jwt:sub", "principal_verified": true }"#),
    ("anonymous", r#"{ "anonymous": "refuse" }"#),
    ("path_case", r#"{ "path_case": "ignore" }"#),
    ("endpoint", r#"{ "endpoint": "fingerprint" }"#),
    ("scope_host", r#"{ "scope_host": true }"#),
    ("fingerprint", r#"{ "fingerprint": "key" }"#),
    ("fingerprint_headers", r#"{ "fingerprint_headers": ["x-tenant"] }"#),
    ("json_include", r#"{ "json_include": ["/amount"] }"#),
    ("json_exclude", r#"{ "json_exclude": ["/sent_at"] }"#),
    ("decode", r#"{ "decode": true }"#),
    ("decode_bytes_max", r#"{ "decode": true, "decode_bytes_max": 99 }"#),
    ("decode_ratio_max", r#"{ "decode": true, "decode_ratio_max": 7 }"#),
    ("body_bytes_max", r#"{ "body_bytes_max": 1000 }"#),
    ("retention", r#"{ "retention": "2d" }"#),
    ("uncertain_retention", r#"{ "uncertain_retention": "60d" }"#),
    ("lease", r#"{ "lease": "5s" }"#),
    ("wait", r#"{ "wait": "2s" }"#),
    ("deadline", r#"{ "deadline": "10s" }"#),
    ("run_max", r#"{ "run_max": "2h" }"#),
    ("on_lapse", r#"{ "on_lapse": "rerun" }"#),
    ("attempts_max", r#"{ "attempts_max": 3 }"#),
    ("expired_keys", r#"{ "expired_keys": "refuse" }"#),
    ("on_store_error", r#"{ "on_store_error": "pass" }"#),
    ("pin", r#"{ "pin": ["503"] }"#),
    ("release", r#"{ "release": ["404"] }"#),
    ("uncertain", r#"{ "uncertain": ["500"] }"#),
    ("classifier", r#"{ "classifier": "graphql" }"#),
    ("outcome_bytes_max", r#"{ "outcome_bytes_max": 1000 }"#),
    ("replay_marker", r#"{ "replay_marker": "x-again" }"#),
    ("mark_first", r#"{ "mark_first": true }"#),
    ("echo_key", r#"{ "echo_key": true }"#),
    ("replay_set_cookie", r#"{ "replay_set_cookie": true }"#),
    ("replay_headers_drop", r#"{ "replay_headers_drop": ["x-secret"] }"#),
    ("replay_headers_only", r#"{ "replay_headers_only": ["etag"] }"#),
    ("early_data", r#"{ "early_data": "accept" }"#),
    ("statuses", r#"{ "statuses": { "key-reused": 409 } }"#),
    ("retry_hint", r#"{ "retry_hint": "x-retry" }"#),
    ("refusals", r#"{ "refusals": { "media_type": "text/html", "body": "<p>{detail}</p>" } }"#),
    ("attempts_per_key", r#"{ "attempts_per_key": "10/1m" }"#),
    ("open_claims_max", r#"{ "open_claims_max": 5 }"#),
    ("stored_bytes_max", r#"{ "stored_bytes_max": 500 }"#),
    ("grpc", r#"{ "grpc": true }"#),
    ("webhook", r#"{ "webhook": "cloudevents" }"#),
    ("webhook", r#"{ "webhook": { "preset": "cloudevents" } }"#),
];

fn options(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn e_06_every_option_is_tested() {
    let listed: BTreeSet<String> = OPTIONS.iter().map(|(option, _)| (*option).to_owned()).collect();
    // Secrets are read and never written.
    assert_eq!(listed, names(&json!(Settings::default())));

    let before = json!(HttpPolicy::default().settings());
    for (option, text) in OPTIONS {
        let options = options(text);
        let after = json!(settings(&options).policy().unwrap().settings());
        assert_ne!(after[option], before[option], "{option}");
        for (name, value) in options.as_object().unwrap() {
            let spelled_otherwise = ["pin", "release", "uncertain"].contains(&name.as_str());
            if !spelled_otherwise {
                assert_eq!(after[name], *value, "{option}");
            }
        }
    }
}

#[test]
fn e_06_effective_settings_make_the_same_policy() {
    let check = |text: &str| {
        let first = settings(&options(text)).policy().unwrap();
        let effective = first.settings();
        let second = effective.clone().policy().unwrap();
        assert_eq!(second.settings(), effective, "{text}");
        let (first, second) = (rules(&first), rules(&second));
        assert_eq!(second.outcomes, first.outcomes, "{text}");
        assert_eq!(second.engine, first.engine, "{text}");
        assert_eq!(second.replay, first.replay, "{text}");
        assert_eq!(second.result_header, first.result_header, "{text}");
        assert_eq!(second.refusals.shape, first.refusals.shape, "{text}");
    };
    for (_, text) in OPTIONS {
        check(text);
        for dialect in Dialect::ALL {
            let mut options = options(text);
            options["dialect"] = json!(dialect);
            check(&options.to_string());
        }
    }
}

#[test]
fn e_06_choices_that_need_code_are_rejected_in_settings() {
    let extracted = HttpPolicy::default().principal(crate::http::Principal::extract(|_| None)).settings();
    assert_eq!(extracted.clone().policy().unwrap_err().option, "principal");
    assert!(serde_json::from_value::<Settings>(json!(extracted)).is_err());
    let receiver = crate::http::Webhook::github(["s3cret"]).unwrap();
    let webhook = HttpPolicy::default().webhook(receiver).settings();
    assert_eq!(webhook.clone().policy().unwrap_err().option, "webhook_secrets");
    let secrets = Some(WebhookSecrets(vec!["another".into()]));
    let again = Settings { webhook_secrets: secrets, ..webhook.clone() }.policy().unwrap();
    assert_eq!(again.settings(), webhook);
}

#[cfg(feature = "webhook")]
#[test]
fn e_06_a_custom_webhook_is_in_the_effective_settings() {
    let text = r#"{ "webhook": { "header": "x-sig", "prefix": "v1=", "separator": ",", "signed": "{time}.{body}",
        "time": "item:t=", "tolerance": "1m", "key": ["json:/id"] }, "webhook_secrets": ["s3cret"] }"#;
    let options = options(text);
    let effective = settings(&options).policy().unwrap().settings();
    assert_eq!(json!(effective)["webhook"], options["webhook"]);
}

#[test]
fn invalid_options_are_refused_with_a_remedy() {
    let check = |text: &str, option: &str, way_out: &str| {
        let shown = match serde_json::from_value::<Settings>(options(text)) {
            // The parser of the text names the option.
            Err(error) => error.to_string(),
            Ok(settings) => {
                let error = settings.policy().expect_err(text);
                assert_eq!(error.option, option, "{text}");
                assert!(error.to_string().starts_with(&format!("`{option}`: ")), "{error}");
                error.to_string()
            }
        };
        assert!(shown.contains(way_out), "{text}: {shown}");
    };
    check(r#"{ "methods": ["GET"] }"#, "methods", "GET is never covered; leave it out");
    check(r#"{ "methods": ["CONNECT"] }"#, "methods", "never covered");
    check(r#"{ "methods": ["get"] }"#, "methods", "GET is never covered; leave it out");
    for unknown in ["PO ST", "PSOT", "", "PURGE", "PROPFIND", "P\u{f6}ST"] {
        check(&format!(r#"{{ "methods": ["{unknown}"] }}"#), "methods", "write it as in");
    }
    check(r#"{ "methods": [] }"#, "methods", "key = \"off\"");
    for option in ["header", "first_sent", "replay_marker", "retry_hint"] {
        check(&format!(r#"{{ "{option}": "a b" }}"#), option, "letters, digits and `-`");
    }
    for option in ["fingerprint_headers", "replay_headers_drop", "replay_headers_only"] {
        check(&format!(r#"{{ "{option}": ["ok", ""] }}"#), option, "letters, digits and `-`");
    }
    check(r#"{ "fingerprint_headers": ["traceparent"] }"#, "fingerprint_headers", "leave it out");
    for option in ["json_include", "json_exclude"] {
        check(&format!(r#"{{ "{option}": ["amount"] }}"#), option, "\"amount\"");
    }
    for place in ["", "id", "header:", "header:a b", "query:", "form:", "json:id", "trailer:x"] {
        check(
            &format!(r#"{{ "key_from": ["query:id", "{place}"] }}"#),
            "key_from",
            &format!("\"{place}\" is not a place"),
        );
    }
    check(r#"{ "key_from": [] }"#, "key_from", "at least one place");
    check(r#"{ "key_derive": ["id"] }"#, "key_derive", "\"id\"");
    check(r#"{ "key_derive_window": "5m" }"#, "key_derive_window", "`key_derive`");
    check(r#"{ "key_derive": ["/id"], "key_derive_window": "0s" }"#, "key_derive_window", "from 1ms");
    check(r#"{ "key_length_max": 0 }"#, "key_length_max", "1 to 255");
    check(r#"{ "key_length_max": 256 }"#, "key_length_max", "1 to 255");
    check(r#"{ "key_length_min": 9, "key_length_max": 8 }"#, "key_length_min", "at most 8");
    check(r#"{ "dialect": "adyen", "key_length_min": 65 }"#, "key_length_min", "at most 64");
    check(r#"{ "key_pattern": "(" }"#, "key_pattern", "correct");
    check(r#"{ "key_pattern": "a)|(b" }"#, "key_pattern", "correct");
    check(r#"{ "key_pattern": "a", "key_format": "uuid" }"#, "key_pattern", "leave either");
    check(r#"{ "first_sent_window": "5m" }"#, "first_sent_window", "`first_sent`");
    check(r#"{ "dialect": "oasis", "first_sent_window": "0s" }"#, "first_sent_window", "from 1ms");
    check(r#"{ "principal": "cookie" }"#, "principal", "header:NAME");
    check(r#"{ "principal": [] }"#, "principal", "principal = \"none\"");
    check(r#"{ "principal": ["cookie:sid", "none"] }"#, "principal", "leave it out");
    check(r#"{ "principal": ["cookie:sid", "cookie"] }"#, "principal", "cookie:NAME");
    check(r#"{ "principal": ["cookie:sid", "jwt:sub"] }"#, "principal", "principal_verified = true");
    check(r#"{ "credential_headers": [] }"#, "credential_headers", "principal = \"none\"");
    check(r#"{ "credential_headers": ["Cookie"] }"#, "credential_headers", "cookie:NAME");
    check(r#"{ "credential_headers": ["a b"] }"#, "credential_headers", "letters, digits and `-`");
    check(r#"{ "principal": "jwt:sub" }"#, "principal", "principal_verified = true");
    check(r#"{ "principal": "header:x-user" }"#, "principal", "principal_verified = true");
    check(r#"{ "decode_bytes_max": 9 }"#, "decode_bytes_max", "decode = true");
    check(r#"{ "decode": false, "decode_ratio_max": 9 }"#, "decode_ratio_max", "decode = true");
    for option in ["decode_bytes_max", "decode_ratio_max"] {
        check(&format!(r#"{{ "decode": true, "{option}": 0 }}"#), option, "at least 1");
    }
    for option in ["attempts_max", "open_claims_max", "stored_bytes_max"] {
        check(&format!(r#"{{ "{option}": 0 }}"#), option, "at least 1");
    }
    for option in ["retention", "uncertain_retention", "deadline", "run_max"] {
        check(&format!(r#"{{ "{option}": "0s" }}"#), option, "from 1ms to 36500d");
        check(&format!(r#"{{ "{option}": "36501d" }}"#), option, "from 1ms to 36500d");
    }
    check(r#"{ "lease": "29ms" }"#, "lease", "from 30ms");
    check(r#"{ "wait": "36501d" }"#, "wait", "from 0s");
    for option in ["pin", "release", "uncertain"] {
        check(&format!(r#"{{ "{option}": ["6xx"] }}"#), option, "a class such as 2xx");
    }
    check(r#"{ "pin": ["404"], "release": ["404"] }"#, "release", "name it once");
    check(r#"{ "grpc": true, "pin": ["OK"], "release": ["ok"] }"#, "release", "name it once");
    for grpc in [r#""pin": ["2xx"]"#, r#""grpc": false"#, r#""classifier": "graphql""#] {
        check(&format!(r#"{{ {grpc}, "uncertain": ["UNAVAILABLE"] }}"#), "uncertain", "`grpc = true`");
    }
    check(r#"{ "pin": ["5xx"], "uncertain": ["5XX"] }"#, "uncertain", "name it once");
    check(r#"{ "classifier": "graphql", "grpc": true }"#, "grpc", "leave one of them out");
    check(r#"{ "classifier": "grpc", "grpc": false }"#, "grpc", "leave one of them out");
    check(r#"{ "statuses": { "teapot": 418 } }"#, "statuses", "key-missing, key-invalid");
    for status in [200, 399, 600, 1000] {
        check(&format!(r#"{{ "statuses": {{ "uncertain": {status} }} }}"#), "statuses", "400 to 599");
    }
    check(r#"{ "refusals": { "media_type": "a/b", "body": "{kode}" } }"#, "refusals", "code, title, detail");
    check(r#"{ "refusals": { "media_type": "text", "body": "" } }"#, "refusals", "application/json");
    check(r#"{ "attempts_per_key": "10" }"#, "attempts_per_key", "10/1m");
    check(r#"{ "webhook": "github" }"#, "webhook_secrets", "");
    check(r#"{ "webhook": "twilio", "webhook_secrets": ["s3cret"] }"#, "webhook", "`url`");
    check(r#"{ "webhook": {}, "webhook_secrets": ["s3cret"] }"#, "webhook", "`header`");
    check(r#"{ "webhook_secrets": ["s3cret"] }"#, "webhook_secrets", "`webhook`");
    check(
        r#"{ "webhook": "cloudevents", "webhook_secrets": ["s3cret"] }"#,
        "webhook_secrets",
        "leave this out",
    );
}

#[test]
fn unknown_values_are_refused_with_the_known_ones() {
    let check = |text: &str, known: &[&str]| {
        let error = serde_json::from_str::<Settings>(text).unwrap_err().to_string();
        for word in known {
            assert!(error.contains(word), "{error}");
        }
    };
    let options = names(&json!(Settings::default()));
    let options: Vec<_> = options.iter().map(String::as_str).chain(["webhook_secrets"]).collect();
    check(r#"{ "retentoin": "2d" }"#, &options);
    check(r#"{ "dialect": "stripe" }"#, &Dialect::ALL.map(Dialect::name));
    check(r#"{ "key": "yes" }"#, &["off", "optional", "required"]);
    check(r#"{ "key_spelling": "bare" }"#, &["any", "quoted", "raw"]);
    check(r#"{ "key_format": "guid" }"#, &["any", "uuid", "uuidv7", "ulid"]);
    check(r#"{ "principal": 5 }"#, &["header:NAME", "a list of such texts"]);
    check(r#"{ "anonymous": "no" }"#, &["share", "refuse"]);
    check(r#"{ "path_case": "no" }"#, &["exact", "ignore"]);
    check(r#"{ "endpoint": "no" }"#, &["scope", "fingerprint"]);
    check(r#"{ "fingerprint": "no" }"#, &["request", "key"]);
    check(r#"{ "on_lapse": "retry" }"#, &["uncertain", "rerun"]);
    check(r#"{ "expired_keys": "no" }"#, &["run", "refuse"]);
    check(r#"{ "on_store_error": "open" }"#, &["refuse", "pass"]);
    check(r#"{ "classifier": "body" }"#, &["status", "graphql", "grpc"]);
    check(r#"{ "early_data": "no" }"#, &["refuse", "accept"]);
    check(r#"{ "webhook": "gitlab" }"#, &["standard", "github", "stripe", "cloudevents"]);
    check(r#"{ "webhook": { "headers": "x-sig" } }"#, &["header", "signed", "content_exclude"]);
    check(r#"{ "webhook": { "header": "x-sig", "algorithm": "md5" } }"#, &["sha1", "sha256", "sha512"]);
    check(r#"{ "webhook": 7 }"#, &["the name of a sender"]);
    check(r#"{ "refusals": "xml" }"#, &["problem", "stripe", "google", "jsonapi", "plain"]);
    check(r#"{ "refusals": 1 }"#, &["the name of a format", "`media_type`", "`body`"]);
    check(r#"{ "refusals": { "media": "a/b" } }"#, &["media_type", "body"]);
    check(r#"{ "retention": "2 weeks" }"#, &["a number with a unit", "24h"]);
    check(r#"{ "retention": 5 }"#, &["string"]);
}

#[test]
fn s_06_secrets_are_never_shown() {
    let text = r#"{ "webhook": "github", "webhook_secrets": ["s3cret"] }"#;
    let settings = settings(&options(text));
    let policy = settings.clone().policy().unwrap();
    for shown in [format!("{settings:?}"), json!(settings).to_string(), format!("{policy:?}")] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    for text in [r#"{ "webhook_secrets": "s3cret" }"#, r#"{ "webhook_secrets": { "s3cret": 1 } }"#] {
        let error = serde_json::from_str::<Settings>(text).unwrap_err().to_string();
        assert!(error.contains("webhook_secrets") && !error.contains("s3cret"), "{error}");
    }
    let bad = r#"{ "webhook": "standard", "webhook_secrets": ["s3cret!"] }"#;
    let error = super::Settings::policy(serde_json::from_str(bad).unwrap()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}

#[test]
fn x_11_grpc_statuses_are_options_of_grpc_routes() {
    let settings = settings(&options(
        r#"{ "grpc": true, "pin": ["UNAVAILABLE"], "release": ["cancelled", "5xx"], "uncertain": ["INTERNAL"] }"#,
    ));
    let effective = settings.policy().unwrap().settings();
    let lists = |list: &Option<Vec<Text<StatusSet>>>, status: &str| {
        list.iter().flatten().any(|listed| listed.to_string() == status)
    };
    assert!(lists(&effective.pin, "UNAVAILABLE") && lists(&effective.pin, "2xx"));
    assert!(lists(&effective.release, "CANCELLED") && lists(&effective.release, "5xx"));
    assert!(lists(&effective.uncertain, "INTERNAL") && lists(&effective.uncertain, "DEADLINE_EXCEEDED"));
    assert_eq!(effective.clone().policy().unwrap().settings(), effective);
    assert!(!lists(&HttpPolicy::default().settings().pin, "OK"));
}

#[test]
fn x_11_single_statuses_override_classes() {
    let settings =
        settings(&options(r#"{ "pin": ["503"], "release": ["404", "5xx"], "uncertain": ["4xx"] }"#));
    let policy = rules(&settings.policy().unwrap());
    let check = |status: u16, outcome| {
        assert_eq!(policy.outcomes.of(http::StatusCode::from_u16(status).unwrap()), outcome, "{status}");
    };
    use crate::http::Outcome::{Pin, Release, Uncertain};
    check(200, Pin);
    check(404, Release);
    check(400, Uncertain);
    check(503, Pin);
    check(500, Release);
}

#[test]
fn m_01_methods_are_read_in_any_case() {
    let policy = settings(&options(r#"{ "methods": ["post", "Delete", "mkcol"] }"#)).policy().unwrap();
    assert_eq!(json!(policy.settings())["methods"], json!(["POST", "DELETE", "MKCOL"]));
}

#[test]
fn k_08_a_pattern_must_match_the_whole_key() {
    let policy = settings(&options(r#"{ "key_pattern": "[a-z]{2}|x1" }"#)).policy().unwrap();
    let check = |key: &str| rules(&policy).key_source.rules.admit(hapax_core::Key::new(key).unwrap()).is_ok();
    assert!(check("ab") && check("x1"));
    assert!(!check("abc") && !check("ax1") && !check("x1b"));
}

#[test]
fn k_02_the_spelling_overrides_no_other_rule_of_the_dialect() {
    let policy = settings(&options(r#"{ "dialect": "adyen", "key_spelling": "any" }"#)).policy().unwrap();
    assert_eq!(rules(&policy).key_source.rules.lengths(), 1..=64);
    assert!(!rules(&policy).key_source.rules.is_raw());
    let policy = settings(&options(r#"{ "dialect": "ietf", "key_spelling": "any" }"#)).policy().unwrap();
    assert!(!rules(&policy).key_source.rules.is_strict());
}

#[test]
fn r_01_the_echoed_key_is_in_the_header_that_is_read() {
    let policy = settings(&options(r#"{ "dialect": "adyen", "header": "x-key" }"#)).policy().unwrap();
    assert_eq!(rules(&policy).replay.echo_key.unwrap(), "x-key");
}
