//! Derived keys match those of CPython.

use std::io::Write as _;
use std::process::{Command, Stdio};

use hapax_core::{JSON_DEPTH_MAX, Key, KeyError};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

/// A reference implementation: reads one JSON text per line, prints one key per line.
const PYTHON: &str = r#"
import hashlib, json, sys
for line in sys.stdin.buffer:
    params = json.loads(line)
    text = "order-123:refund"
    if params is not None and params != {} and params != []:
        text += ":" + json.dumps(params, sort_keys=True)
    print(hashlib.sha256(text.encode()).hexdigest()[:32])
"#;

fn keys_by_python(params: &[String]) -> Vec<String> {
    let child = Command::new("python3")
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs; install it with: apt-get install python3");
    let mut stdin = child.stdin.as_ref().unwrap();
    // The output fits in the pipe buffer, so writing all input before reading cannot deadlock.
    let input = params.iter().map(|line| format!("{line}\n")).collect::<String>();
    stdin.write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn check_against_python(params: &[String]) {
    let by_python = keys_by_python(params);
    assert_eq!(by_python.len(), params.len());
    for (params, by_python) in params.iter().zip(by_python) {
        let ours = Key::derive_json("order-123", "refund", params);
        assert_eq!(ours.as_ref().map(Key::as_str), Ok(&*by_python), "{params}");
    }
}

#[test]
fn derived_keys_match_python() {
    let table = [
        "null",
        "{}",
        "[]",
        " { } ",
        "0",
        "false",
        "\"\"",
        "[[]]",
        "[{}]",
        "[null]",
        r#"{"amount": 12, "currency": "EUR"}"#,
        r#"{"currency":"EUR","amount":12}"#,
        r#"{"b": {"d": [1, {"z": 1, "y": 2}], "c": null}, "a": [true, false]}"#,
        r#"{"name": "Zoë", "city": "東京", "smile": "😀"}"#,
        r#"{"esc": "\"\\\/\b\f\n\r\t\u0001\u001f\u007f\u0080\u00e9\ud83d\ude00\u2028"}"#,
        "{\"del\": \"\u{7f}\"}",
        r#"{"é": 1, "z": 2, "Z": 3, "😀": 4, "\uff5e": 5, "": 6, "a b": 7}"#,
        r#"{"a": 1, "a": 2, "\u0061": 3}"#,
        r#"{"a": {"b": 1}, "a": {"c": 2}}"#,
        "[18446744073709551615, 18446744073709551616, -9223372036854775809, 123456789012345678901234567890]",
        "[0, -0, -0.0, 0.0, 0e5, -0e0, 1E5, 1e5, 1.0, 1.50, 100.0, 1e-0]",
        "[1e15, 1e16, 1e17, 9999999999999998.0, 12345678901234567.0, 1.5e16, 1e22, 1e23, 1e100, 1e-100]",
        "[0.001, 0.0001, 0.00001, 0.00012, 0.000012, 1.5e-5, 1e-05, 1e-10, 123e-7]",
        "[0.1, 0.2, 0.30000000000000004, 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 1e-400]",
        "[9007199254740992.0, 9007199254740993.0, 4503599627370496.5, 2.5e-5, 5e-5, 9.5e15]",
    ];
    check_against_python(&table.map(str::to_owned));
}

#[test]
fn floats_at_ties_and_powers_match_python() {
    // Halfway between two shortest candidates Python takes the even one.
    let ties = (0..200).map(|step| 2_025_985_384_033_618.0 + 0.25 * f64::from(step));
    // At powers of two the gap between floats changes, where shortest printing fails first.
    let twos = (-1074..1024).map(|exponent| 2f64.powi(exponent));
    let tens = (-323..309).map(|exponent| format!("1e{exponent}").parse::<f64>().unwrap());
    let floats: Vec<_> = ties.chain(twos).chain(tens).map(|float| format!("{float:e}")).collect();
    let lines: Vec<_> = floats.chunks(10).map(|some| format!("[{}]", some.join(","))).collect();
    check_against_python(&lines);
}

fn any_params() -> impl Strategy<Value = serde_json::Value> {
    let float = any::<f64>().prop_filter("JSON has no NaN", |float| float.is_finite());
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<u64>().prop_map(|value| json!(value)),
        float.prop_map(|value| json!(value)),
        (-1e7..1e17).prop_map(|value: f64| json!(value)),
        ".{0,8}".prop_map(|value| json!(value)),
        "[ -~]{0,8}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map("(.|[a-c]){0,2}", inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

/// One Python process for all cases: a process per case would take minutes.
#[test]
fn generated_params_match_python() {
    let mut runner = TestRunner::deterministic();
    let values: Vec<_> = (0..400).map(|_| any_params().new_tree(&mut runner).unwrap().current()).collect();
    let texts: Vec<_> = values.iter().map(ToString::to_string).collect();
    for (by_python, value) in keys_by_python(&texts).iter().zip(values) {
        let ours = Key::derive("order-123", "refund", Some(&value));
        assert_eq!(ours.as_ref().map(Key::as_str), Ok(&**by_python), "{value}");
    }
}

#[test]
fn absent_and_empty_params_derive_one_key() {
    let none = Key::derive("order-123", "refund", None).unwrap();
    assert_eq!(none.as_str().len(), 32);
    for empty in [json!(null), json!({}), json!([])] {
        assert_eq!(Key::derive("order-123", "refund", Some(&empty)).as_ref(), Ok(&none));
    }
    assert_ne!(Key::derive("order-123", "refund", Some(&json!(0))).unwrap(), none);
}

#[test]
fn entity_action_and_params_all_count() {
    let params = json!({ "a": 1 });
    let key = Key::derive("order-1", "refund", Some(&params)).unwrap();
    assert_eq!(Key::derive("order-1", "refund", Some(&params)).unwrap(), key);
    assert_ne!(Key::derive("order-2", "refund", Some(&params)).unwrap(), key);
    assert_ne!(Key::derive("order-1", "cancel", Some(&params)).unwrap(), key);
    assert_ne!(Key::derive("order-1", "refund", Some(&json!({ "a": 2 }))).unwrap(), key);
}

#[test]
fn large_integers_derive_distinct_keys() {
    let key = |params| Key::derive_json("o", "a", params).unwrap();
    assert_ne!(key("[100000000000000000000000000001]"), key("[100000000000000000000000000002]"));
    assert_ne!(key("1"), key("1.0"));
}

#[test]
fn unusable_params_are_refused_with_the_position() {
    let at = |params: &str| match Key::derive_json("o", "a", params) {
        Err(KeyError::Params { at, .. }) => at,
        other => panic!("{params}: {other:?}"),
    };
    assert_eq!(at(""), 0);
    assert_eq!(at("NaN"), 0);
    assert_eq!(at("[Infinity]"), 1);
    assert_eq!(at("[-Infinity]"), 2);
    assert_eq!(at("[1, 1e400]"), 4);
    assert_eq!(at("[01]"), 2);
    assert_eq!(at("[1.]"), 3);
    assert_eq!(at("[1e]"), 3);
    assert_eq!(at("[-]"), 2);
    assert_eq!(at("[+1]"), 1);
    assert_eq!(at("[1,]"), 3);
    assert_eq!(at("[1 2]"), 3);
    assert_eq!(at("[1"), 2);
    assert_eq!(at("{"), 1);
    assert_eq!(at("{a: 1}"), 1);
    assert_eq!(at("{\"a\" 1}"), 5);
    assert_eq!(at("{\"a\": 1 \"b\"}"), 8);
    assert_eq!(at("{\"a\": 1,}"), 8);
    assert_eq!(at("nul"), 0);
    assert_eq!(at("tru"), 0);
    assert_eq!(at("\"a"), 2);
    assert_eq!(at("\"a\nb\""), 2);
    assert_eq!(at("\"a\\x\""), 2);
    assert_eq!(at("\"\\u12g4\""), 1);
    assert_eq!(at("\"\\u+123\""), 1);
    assert_eq!(at("\"\\u12"), 1);
    assert_eq!(at("\"\\ud800\""), 1);
    assert_eq!(at("\"\\udc00\""), 1);
    assert_eq!(at("\"\\ud800\\u0041\""), 1);
    assert_eq!(at("\"\\ud800\\ud800\""), 1);
    assert_eq!(at("\"\\udc00\\udc00\""), 1);
    assert_eq!(at("1 1"), 2);
    assert_eq!(at("\u{feff}1"), 0);
    assert_eq!(
        Key::derive_json("o", "a", "[1 2]").unwrap_err().to_string(),
        "the parameters are not usable JSON at position 3: a comma or ] was expected; correct them there"
    );
}

#[test]
fn depth_has_a_limit() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Key::derive_json("o", "a", &nested(JSON_DEPTH_MAX)).is_ok());
    let too_deep = Key::derive_json("o", "a", &nested(JSON_DEPTH_MAX + 1));
    assert_eq!(too_deep, Err(KeyError::Params { at: JSON_DEPTH_MAX, why: "this nests too deep" }));
    assert!(Key::derive_json("o", "a", &nested(100_000)).is_err());
}
