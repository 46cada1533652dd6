use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::http::{Code, HttpPolicy, IdempotencyLayer, Principal, Webhook};
use crate::{Hapax, MemoryStore};

/// A layer with a route of each dialect, a webhook, a gRPC route and a route that is off.
fn layer() -> IdempotencyLayer {
    let mut layer = IdempotencyLayer::new(Hapax::new(MemoryStore::new()));
    for dialect in Dialect::ALL {
        layer = layer.route(format!("/{}/{{id}}", dialect.name()).as_str(), HttpPolicy::of(dialect));
    }
    let google = HttpPolicy::default()
        .refusals(RefusalShapeName::Google.into())
        .status(Code::Uncertain, http::StatusCode::UNPROCESSABLE_ENTITY);
    let secret = Webhook::github(["s3cret"]).unwrap();
    let strict = HttpPolicy::default()
        .key(KeyMode::Required)
        .namespace("n4mespace")
        .on_store_error(OnStoreError::Pass)
        .anonymous(Anonymous::Refuse)
        .deadline(Duration::from_secs(1))
        .methods([Method::DELETE])
        .mark_first(true)
        .attempts_per_key("10/1m".parse().unwrap());
    layer
        .route("/hooks", HttpPolicy::default().webhook(secret))
        .route("/off/**", HttpPolicy::default().key(KeyMode::Off))
        .route("/pay.Ledger/Post", HttpPolicy::default().classifier(Classifier::Grpc))
        .route("/strict", strict)
        .route("/named", HttpPolicy::default().principal(Principal::cookie("sid")))
        .route("/google", google)
}

fn with_runtime<T>(work: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { work() })
}

fn route(path: &str) -> RouteDocument {
    let document = with_runtime(|| layer().document());
    document.routes.into_iter().find(|route| route.path == path).unwrap()
}

fn codes(route: &RouteDocument) -> BTreeSet<&'static str> {
    route.problems.iter().map(|problem| problem.code).collect()
}

#[test]
fn e_06_the_default_route_is_published() {
    let mut route = json!(route("/**"));
    let problems = route.as_object_mut().unwrap().remove("problems").unwrap();
    let expected = json!({
        "path": "/**",
        "path_case": "exact",
        "methods": ["POST", "PUT", "PATCH"],
        "dialect": "default",
        "key": {
            "mode": "optional", "places": ["header:idempotency-key"], "header": "idempotency-key", "derived_from": [],
            "derived_window": null, "quoted": false, "raw": false,
            "length_min": 1, "length_max": 255, "format": "a key", "pattern": null,
            "first_sent": null, "first_sent_window": null, "webhook": false,
        },
        "scope": {
            "principal": "credentials",
            "credential_headers": ["api-key", "authorization", "x-api-key", "x-auth-token", "x-shopify-access-token"],
            "anonymous": "share", "endpoint": "scope", "host": false,
        },
        "fingerprint": {
            "counts": ["method", "path", "query", "content-type", "body"],
            "headers": ["api-version", "if-match", "if-none-match", "x-api-version"],
            "json_include": [], "json_exclude": [], "decoded": false,
        },
        "outcomes": [
            { "statuses": "2xx", "outcome": "pin" },
            { "statuses": "3xx", "outcome": "pin" },
            { "statuses": "307", "outcome": "release" },
            { "statuses": "308", "outcome": "release" },
            { "statuses": "4xx", "outcome": "pin" },
            { "statuses": "401", "outcome": "release" },
            { "statuses": "403", "outcome": "release" },
            { "statuses": "407", "outcome": "release" },
            { "statuses": "408", "outcome": "release" },
            { "statuses": "412", "outcome": "release" },
            { "statuses": "421", "outcome": "release" },
            { "statuses": "423", "outcome": "release" },
            { "statuses": "425", "outcome": "release" },
            { "statuses": "428", "outcome": "release" },
            { "statuses": "429", "outcome": "release" },
            { "statuses": "5xx", "outcome": "release" },
            { "statuses": "502", "outcome": "uncertain" },
            { "statuses": "504", "outcome": "uncertain" },
        ],
        "classifier": "status",
        "retention": { "text": "1d", "iso_8601": "P1D" },
        "wait": { "text": "0s", "iso_8601": "PT0S" },
        "expired_keys": "run",
        "on_store_error": "refuse",
        "early_data": "refuse",
        "limits": {
            "body_bytes_max": 2 << 20, "outcome_bytes_max": 1 << 20,
            "attempts_per_key": null, "open_claims_max": 4096, "stored_bytes_max": null,
        },
        "replay": {
            "marker": "x-idempotent-replayed", "mark_first": false, "echo_key": false, "set_cookie": false,
            "headers_drop": [], "headers_only": null,
            "retry_hints": ["x-should-retry"], "result_header": null,
        },
        "refusals": {
            "shape": "problem", "media_type": "application/problem+json", "problem_details": true,
        },
    });
    assert_eq!(route, expected);
    assert_eq!(
        problems[1],
        json!({
            "code": "key-reused",
            "type": "https://hapax.dev/errors/key-reused",
            "title": Code::KeyReused.title(),
            "status": 422,
            "statuses_further": [],
            "grpc_status": null,
            "retryable": false,
            "retry_with_same_key": false,
            "safe_new_key": false,
        })
    );
}

#[test]
fn e_06_only_possible_refusals_are_published() {
    let always = BTreeSet::from([
        "key-invalid",
        "key-reused",
        "in-progress",
        "uncertain",
        "result-unavailable",
        "too-large",
        "rate-limited",
        "store-unavailable",
        "draining",
        "overloaded",
        "digest-mismatch",
        "body-incomplete",
    ]);
    let check = |path: &str, further: &[&'static str]| {
        let expected: BTreeSet<_> = always.iter().chain(further).copied().collect();
        assert_eq!(codes(&route(path)), expected, "{path}");
    };
    check("/**", &["principal-missing", "too-early"]);
    check("/named", &["too-early"]);
    check("/strict", &["key-missing", "principal-missing", "too-early"]);
    check("/oasis/{id}", &["principal-missing", "too-early", "key-expired", "not-repeatable"]);
    check("/hooks", &["too-early", "key-missing", "signature-invalid"]);
    assert_eq!(codes(&route("/off/**")).len(), 0);
}

#[test]
fn e_06_x_11_a_grpc_route_publishes_grpc_outcomes() {
    let outcomes = route("/pay.Ledger/Post").outcomes;
    assert_eq!(outcomes.len(), 17);
    for (name, outcome) in
        [("OK", "pin"), ("ALREADY_EXISTS", "pin"), ("ABORTED", "release"), ("UNAVAILABLE", "release")]
    {
        let published = outcomes.iter().find(|published| published.statuses == name);
        assert_eq!(published.map(|published| published.outcome), Some(outcome), "{name}");
    }
}

#[test]
fn e_04_statuses_are_those_in_force() {
    let check = |path: &str, code: &str, status: u16, further: &[u16]| {
        let route = route(path);
        let problem = route.problems.iter().find(|problem| problem.code == code).unwrap();
        assert_eq!((problem.status, &problem.statuses_further[..]), (status, further), "{path} {code}");
    };
    check("/stripe-v1/{id}", "key-reused", 400, &[]);
    check("/stripe-v2/{id}", "key-reused", 422, &[]);
    check("/oasis/{id}", "key-expired", 400, &[412]);
    check("/strict", "in-progress", 409, &[504]);
    check("/**", "in-progress", 409, &[]);
    check("/**", "uncertain", 409, &[500, 502]);
    check("/google", "uncertain", 422, &[]);
    let grpc = route("/pay.Ledger/Post");
    assert!(grpc.problems.iter().all(|problem| problem.grpc_status.is_some()));
}

#[test]
fn s_06_no_deployment_internals_are_published() {
    let (document, openapi) = with_runtime(|| (json!(layer().document()), layer().openapi()));
    for published in [document.to_string(), openapi.to_string()] {
        assert!(!published.contains("s3cret") && !published.contains("n4mespace"));
    }
}

/// Collects every value under this name, at any depth.
fn all<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get(name));
            members.values().for_each(|value| all(value, name, found));
        }
        Value::Array(items) => items.iter().for_each(|value| all(value, name, found)),
        _ => {}
    }
}

#[test]
fn e_06_every_reference_of_the_fragment_resolves() {
    let openapi = with_runtime(|| layer().openapi());
    let mut references = Vec::new();
    all(&openapi, "$ref", &mut references);
    assert!(references.len() > 100);
    let mut used = BTreeSet::new();
    for reference in references {
        let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
        assert!(openapi.pointer(pointer).is_some(), "{pointer}");
        used.insert(pointer);
    }
    for (section, parts) in openapi["components"].as_object().unwrap() {
        for name in parts.as_object().unwrap().keys() {
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}");
            assert!(used.contains(format!("/components/{section}/{name}").as_str()), "{name} is unused");
        }
    }
}

#[test]
fn e_06_the_fragment_has_the_form_of_openapi() {
    let openapi = with_runtime(|| layer().openapi());
    assert_eq!(openapi["openapi"], "3.1.0");
    assert!(openapi["info"]["title"].is_string() && openapi["info"]["version"].is_string());
    let components = &openapi["components"];
    for parameter in components["parameters"].as_object().unwrap().values() {
        assert_eq!(parameter["in"], "header");
        assert!(parameter["name"].is_string() && parameter["schema"]["type"].is_string());
    }
    for response in components["responses"].as_object().unwrap().values() {
        assert!(response["description"].is_string());
        let content = &response["content"];
        let is_problem = content["application/problem+json"]["schema"]["allOf"].is_array();
        assert!(is_problem || content["application/json"]["example"]["error"].is_object(), "{content}");
    }
    for header in components["headers"].as_object().unwrap().values() {
        assert!(header["description"].is_string() && header["schema"]["type"].is_string());
    }
}

#[test]
fn e_06_the_format_of_refusals_is_published() {
    let shape = |path: &str| json!(route(path).refusals);
    let google = json!({ "shape": "google", "media_type": "application/json", "problem_details": false });
    assert_eq!(shape("/google"), google);
    let stripe =
        json!({ "shape": "stripe", "media_type": "application/problem+json", "problem_details": true });
    assert_eq!(shape("/stripe-v1/{id}"), stripe);
    let reused = route("/google").problems.into_iter().find(|problem| problem.code == "key-reused");
    assert_eq!(reused.unwrap().example.unwrap()["error"]["status"], "FAILED_PRECONDITION");
}

#[test]
fn e_06_different_routes_have_separate_components() {
    let openapi = with_runtime(|| layer().openapi());
    let entry = |path: &str| {
        let entries = openapi["x-idempotency"].as_array().unwrap();
        entries.iter().find(|entry| entry["path"] == path).unwrap()
    };
    let key = |path: &str| {
        let reference = entry(path)["parameters"][0]["$ref"].as_str().unwrap();
        openapi.pointer(&reference[1..]).unwrap()
    };
    assert_eq!(key("/default/{id}")["required"], false);
    assert_eq!(key("/strict")["required"], true);
    assert_eq!(
        key("/ietf/{id}")["schema"],
        json!({ "type": "string", "minLength": 3, "pattern": "^\\s*\"" })
    );
    assert_eq!(key("/oasis/{id}")["name"], "repeatability-request-id");
    assert_eq!(entry("/oasis/{id}")["parameters"].as_array().unwrap().len(), 2);
    assert_eq!(entry("/hooks")["parameters"], json!([]));
    assert_eq!(entry("/off/**").get("responses"), None);
    assert_eq!(entry("/pay.Ledger/Post").get("responses"), None);
    assert_eq!(entry("/**")["responses"]["409"].as_array().unwrap().len(), 3);
    assert_eq!(
        entry("/stripe-v1/{id}")["responses"]["400"][1]["$ref"],
        "#/components/responses/IdempotencyKeyReused2"
    );
    assert!(entry("/strict")["headers"]["idempotency-protected"].is_object());
    assert_eq!(entry("/**")["headers"].get("idempotency-protected"), None);
}
