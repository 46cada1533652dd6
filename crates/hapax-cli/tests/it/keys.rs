//! `hapax key`.

use crate::binary::hapax;
use crate::fixture::Fixture;

/// Computed with CPython: `sha256(f"{entity}:{action}" + (":" + json.dumps(params, sort_keys=True) if params))`.
const DERIVED: [(&str, &str, Option<&str>, &str); 13] = [
    ("order-123", "create", None, "7b97db5c51b7ed320d3b4e965631e60d"),
    ("order-123", "create", Some("null"), "7b97db5c51b7ed320d3b4e965631e60d"),
    ("order-123", "create", Some("{}"), "7b97db5c51b7ed320d3b4e965631e60d"),
    ("order-123", "create", Some("[]"), "7b97db5c51b7ed320d3b4e965631e60d"),
    ("order-123", "create", Some(r#"{"b": 2, "a": 1}"#), "396d7b550b3781e9c98d7b87544fa275"),
    (
        "order-123",
        "refund",
        Some(r#"{"amount": 10.50, "currency": "EUR"}"#),
        "a9d692f247a7f3ac0cf8f973cd9bc907",
    ),
    (
        "user-7",
        "notify",
        Some(r#"{"name": "Zürich ☃ 😀", "del": "\u007f"}"#),
        "1c8bb2a178595bcf97bbac3b12bc52e7",
    ),
    (
        "order-123",
        "create",
        Some(r#"{"big": 123456789012345678901234567890, "neg": -5}"#),
        "144e887bab92f18d82cd51c711919777",
    ),
    (
        "order-123",
        "create",
        Some(r#"{"f": [1e16, 1e-5, 0.1, 1.0, -0.0, 123456789.125]}"#),
        "1e1c5ed60c067f7d068320aa8e94f400",
    ),
    (
        "order-123",
        "create",
        Some(r#"{"nested": {"z": [1, {"y": null, "x": true}], "a": "q\"uote\\"}}"#),
        "d13acf86f18e1c158834f918f3b4046e",
    ),
    ("order-123", "create", Some("[1, 2, 3]"), "0373253316266e695f9a18891b826d84"),
    ("order-123", "create", Some(r#""text""#), "fbb319b5c6f9853ace5eb3bba530d0bd"),
    ("bestellung-ü", "anlegen", None, "20e168325986f63998997dc2f73c3f72"),
];

#[test]
fn derived_keys_match_those_of_python() {
    let fixture = Fixture::bare();
    for (entity, action, params, expected) in DERIVED {
        let mut args = vec!["key", "derive", entity, action];
        args.extend(params.iter().flat_map(|params| ["--params", params]));
        let run = hapax(fixture.path(), &args).ended(0);
        assert_eq!(run.stdout, format!("{expected}\n"), "{entity} {action} {params:?}");
    }
}

#[test]
fn a_derived_key_is_printed_as_json() {
    let fixture = Fixture::bare();
    let run = hapax(fixture.path(), &["key", "derive", "order-123", "create", "--json"]).ended(0);
    assert_eq!(run.json(), serde_json::json!({ "key": "7b97db5c51b7ed320d3b4e965631e60d" }));
}

#[test]
fn params_that_are_not_json_are_refused_with_the_position() {
    let fixture = Fixture::bare();
    for params in ["{", "{'a': 1}", "NaN", ""] {
        let run = hapax(fixture.path(), &["key", "derive", "e", "a", "--params", params]);
        let run = run.failed(2, "input-invalid");
        assert!(run.stderr.contains("position"), "{run:?}");
    }
}

#[test]
fn new_keys_are_uuids_and_differ() {
    let fixture = Fixture::bare();
    let first = hapax(fixture.path(), &["key", "new"]).ended(0);
    let second = hapax(fixture.path(), &["key", "new", "--json"]).ended(0);
    let first = first.stdout.trim();
    assert_eq!(first.len(), 36);
    assert_eq!(&first[14..15], "7", "version 7");
    assert_ne!(second.json()["key"], first);
}

#[test]
fn keys_are_generated_without_a_store() {
    let fixture = Fixture::bare();
    hapax(fixture.path(), &["key", "new", "--store", "nonsense"]).ended(0);
    assert!(!fixture.store().exists());
}
