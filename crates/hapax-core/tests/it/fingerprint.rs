//! Equivalent requests have equal fingerprints; all others differ.

use std::collections::BTreeSet;

use hapax_core::{Fingerprint, JSON_DEPTH_MAX, Select};
use proptest::prelude::*;
use serde_json::{Value, json};

fn of(body: &str) -> Fingerprint {
    Fingerprint::builder().json("body", body.as_bytes()).build()
}

fn raw(body: &str) -> Fingerprint {
    Fingerprint::builder().part("body", body.as_bytes()).build()
}

fn hex(fingerprint: Fingerprint) -> String {
    fingerprint.digest().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn f_02_every_part_counts_and_boundaries_are_unambiguous() {
    let build = |parts: &[(&str, &str)]| {
        parts.iter().fold(Fingerprint::builder(), |b, (name, bytes)| b.part(name, bytes.as_bytes())).build()
    };
    let all = [
        Fingerprint::empty(),
        build(&[("", "")]),
        build(&[("a", "")]),
        build(&[("", "a")]),
        build(&[("a", "b")]),
        build(&[("ab", "")]),
        build(&[("a", "b"), ("c", "d")]),
        build(&[("c", "d"), ("a", "b")]),
        build(&[("a", "b"), ("", "")]),
        build(&[("a", "bc"), ("", "d")]),
    ];
    let digests: BTreeSet<_> = all.iter().map(|fingerprint| *fingerprint.digest()).collect();
    assert_eq!(digests.len(), all.len());
    assert_eq!(build(&[]), Fingerprint::empty());
}

#[test]
fn f_02_fingerprints_of_different_algorithms_are_not_compared() {
    let fingerprint = raw("x");
    assert_eq!(fingerprint.algorithm(), 1);
    assert_eq!(fingerprint.matches(&raw("x")), Some(true));
    assert_eq!(fingerprint.matches(&raw("y")), Some(false));
    let newer = Fingerprint::from_parts(2, *fingerprint.digest());
    assert_eq!(fingerprint.matches(&newer), None);
}

/// Around the buffer sizes of a hash that batches short parts.
#[test]
fn f_02_parts_of_every_length_match_the_definition() {
    use sha2::{Digest, Sha256};

    let sized = |hash: &mut Sha256, bytes: &[u8]| {
        hash.update(crate::length(bytes.len()));
        hash.update(bytes);
    };
    for length in [2, 127, 128, 400, 900, 1000, 1014, 1015, 1023, 1024, 1025, 5000, 16_383, 16_384, 70_000] {
        let body = format!("\"{}\"", "x".repeat(length - 2));
        let mut expected = Sha256::new();
        sized(&mut expected, b"hapax fingerprint 1");
        for (name, kind) in [("raw", 0), ("json", 1), ("after", 0)] {
            sized(&mut expected, name.as_bytes());
            expected.update([kind]);
            sized(&mut expected, body.as_bytes());
        }
        let parts = Fingerprint::builder().part("raw", body.as_bytes()).json("json", body.as_bytes());
        let fingerprint = parts.part("after", body.as_bytes()).build();
        assert_eq!(fingerprint.digest()[..], expected.finalize()[..], "{length} bytes");
    }
}

/// Stores keep fingerprints for days and other processes compare them: algorithm 1 must never change.
#[test]
fn f_02_algorithm_1_is_frozen() {
    let fingerprint = Fingerprint::builder()
        .part("method", b"POST")
        .json("body", br#"{"b": [1.0, "\u00e9\u0007"], "a": {}}"#)
        .json("raw", b"{")
        .build();
    assert_eq!(hex(fingerprint), "0ebd83c7471c64bc0772a74aee84b3a3adfa50c1e3d164640e6fd0299ae343d3");
}

#[test]
fn f_05_spelling_does_not_count() {
    let spellings = [
        r#"{"b":[1,{"x":null,"y":true}],"a":"é/\"\\\n"}"#,
        r#" { "a" : "\u00e9\/\u0022\u005C\u000a" , "b" : [ 1 , { "y" : true , "x" : null } ] } "#,
        "{\t\"\\u0062\"\r\n:[1,{\"\\u0079\":true,\"x\":null}],\"a\":\"\u{e9}/\\\"\\\\\\n\"}",
    ];
    for spelling in spellings {
        assert_eq!(of(spelling), of(spellings[0]), "{spelling}");
        assert_ne!(of(spelling), raw(spelling), "canonical, not raw: {spelling}");
    }
    assert_eq!(of(r#""\ud83d\ude00""#), of("\"😀\""));
}

#[test]
fn f_05_numbers_count_as_written() {
    let different =
        ["1", "1.0", "1e0", "1E0", "10e-1", "-1", "9007199254740992", "9007199254740993", "0", "-0", "0.0"];
    let digests: BTreeSet<_> = different.iter().map(|number| *of(number).digest()).collect();
    assert_eq!(digests.len(), different.len());
}

#[test]
fn f_05_meaning_counts() {
    let different = [
        "null",
        "true",
        "false",
        "[]",
        "{}",
        "\"\"",
        "\"null\"",
        "[1,2]",
        "[2,1]",
        "[[1],2]",
        "[1,[2]]",
        "[12]",
        r#"{"a":1}"#,
        r#"{"a":2}"#,
        r#"{"A":1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":[1]}"#,
        r#"["a",1]"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"a":2,"b":1}"#,
        r#""a\u0000""#,
        r#""a\\u0000""#,
        "\"e\u{301}\"",
        "\"\u{e9}\"",
    ];
    let digests: BTreeSet<_> = different.iter().map(|body| *of(body).digest()).collect();
    assert_eq!(digests.len(), different.len());
}

#[test]
fn f_05_ambiguous_json_is_hashed_verbatim() {
    let ambiguous = [
        "",
        " ",
        "{",
        "[1,]",
        "NaN",
        "01",
        "'a'",
        "1 2",
        "\u{feff}{}",
        "\"\t\"",
        "tru",
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"[{"x":{"a":1,"b":2,"a":3}}]"#,
        r#""\ud800""#,
        r#""\udc00\ud800""#,
        r#"{"\ud800":1}"#,
    ];
    for body in ambiguous {
        assert_eq!(of(body), raw(body), "{body}");
    }
    let not_utf8 = b"\"\xff\"";
    assert_eq!(
        Fingerprint::builder().json("body", not_utf8).build(),
        Fingerprint::builder().part("body", not_utf8).build()
    );
}

#[test]
fn f_05_canonical_text_as_raw_bytes_is_another_request() {
    for body in ["1", "[1]", r#"{"a":1}"#, "\"x\""] {
        assert_ne!(of(body), raw(body), "{body}");
    }
}

/// RFC 8785 orders names by UTF-16 code units: U+1F600 starts with a surrogate and comes before U+FF5E.
#[test]
fn f_05_names_of_all_planes_sort_by_utf_16() {
    assert_eq!(
        hex(of(r#"{"z":3,"😀":1,"～":2}"#)),
        "44def769523dcd3f6f0b95832f5236763004a0567a2956a8a39f425cdb59d139"
    );
    assert_eq!(of(r#"{"😀":1,"～":2,"z":3}"#), of(r#"{"z":3,"～":2,"😀":1}"#));
}

#[test]
fn f_05_depth_has_a_limit() {
    let nested = |depth: usize| format!("{} 1{}", "[".repeat(depth), "]".repeat(depth));
    assert_ne!(of(&nested(JSON_DEPTH_MAX)), raw(&nested(JSON_DEPTH_MAX)));
    assert_eq!(of(&nested(JSON_DEPTH_MAX + 1)), raw(&nested(JSON_DEPTH_MAX + 1)));
    assert_eq!(of(&nested(100_000)), raw(&nested(100_000)));
    let objects = "{\"a\":".repeat(100_000);
    assert_eq!(of(&objects), raw(&objects));
    let siblings = format!("[{}]", vec!["[[1]]"; 1000].join(","));
    assert_ne!(of(&siblings), raw(&siblings), "closing brackets reduce the depth");
}

#[test]
fn debug_shows_a_prefix_of_the_digest() {
    let fingerprint = Fingerprint::from_parts(1, [0xab; 32]);
    assert_eq!(format!("{fingerprint:?}"), "v1:abababababababab");
    let builder = Fingerprint::builder().part("body", b"secret");
    assert_eq!(format!("{builder:?}"), "FingerprintBuilder");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        ".{0,6}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| json!(items)),
            prop::collection::btree_map("(.|[a-c]){0,3}", inner, 0..5).prop_map(|members| json!(members)),
        ]
    })
}

/// The same value in another form: members reversed, spaces everywhere, every character escaped.
fn respelled(value: &Value) -> String {
    let escaped = |text: &str| {
        let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        format!("\"{units}\"")
    };
    match value {
        Value::String(text) => escaped(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(respelled).collect();
            format!("[ {} ]", items.join(" ,\n"))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .rev()
                .map(|(name, value)| format!("{} :\t{}", escaped(name), respelled(value)))
                .collect();
            format!("{{\r{} }}", members.join(" , "))
        }
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn f_05_any_value_respelled_is_the_same(value in any_json()) {
        prop_assert_eq!(of(&respelled(&value)), of(&value.to_string()));
        prop_assert_ne!(of(&value.to_string()), raw(&value.to_string()));
    }

    #[test]
    fn f_05_any_two_values_differ_when_they_are_different(a in any_json(), b in any_json()) {
        prop_assert_eq!(a == b, of(&a.to_string()) == of(&respelled(&b)));
    }

    #[test]
    fn f_05_a_changed_value_is_a_different_request(members in prop::collection::btree_map(".{0,3}", any::<u32>(), 1..6), at in any::<prop::sample::Index>()) {
        let mut changed = members.clone();
        let name = members.keys().nth(at.index(members.len())).unwrap();
        *changed.get_mut(name).unwrap() ^= 1;
        prop_assert_ne!(of(&json!(changed).to_string()), of(&json!(members).to_string()));
    }

    #[test]
    fn f_05_arbitrary_bytes_have_a_fingerprint(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let twice = [(), ()].map(|()| Fingerprint::builder().json("body", &bytes).build());
        prop_assert_eq!(twice[0], twice[1]);
    }

    #[test]
    fn f_05_invalid_json_is_hashed_verbatim(text in "[\\[\\]{}:,\"0-9a-bnul\\\\. -]{0,16}") {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        if !is_json {
            prop_assert_eq!(of(&text), raw(&text));
        }
    }
}

fn select(include: &[&str], exclude: &[&str]) -> Select {
    let pointers = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
    Select::default().include(pointers(include)).exclude(pointers(exclude))
}

fn selected(body: &str, select: &Select) -> Fingerprint {
    Fingerprint::builder().json_selected("body", body.as_bytes(), select).build()
}

/// Under this selection, `body` is the same request as all of `same` and as none of `other`.
fn check_selected(select: &Select, body: &str, same: &[&str], other: &[&str]) {
    for like in same {
        assert_eq!(selected(like, select), selected(body, select), "{select:?} {body} {like}");
    }
    for unlike in other {
        assert_ne!(selected(unlike, select), selected(body, select), "{select:?} {body} {unlike}");
    }
}

#[test]
fn f_06_excluded_values_do_not_count() {
    let at = |pointer| select(&[], &[pointer]);
    check_selected(
        &at("/t"),
        r#"{"a":1,"t":5}"#,
        &[r#"{"t":[6],"a":1}"#, r#"{"a":1}"#],
        &[r#"{"a":2,"t":5}"#, r#"{"a":1,"T":5}"#, r#"{"a":1,"t":5,"u":0}"#],
    );
    check_selected(
        &at("/a/t"),
        r#"{"a":{"t":1},"t":1}"#,
        &[r#"{"a":{"t":2},"t":1}"#, r#"{"a":{},"t":1}"#],
        &[r#"{"a":{"t":1},"t":2}"#, r#"{"a":[],"t":1}"#],
    );
    check_selected(&at("/0"), "[1,2]", &["[3,2]", "[null,2]"], &["[1,3]", "[2]", "[1,2,3]"]);
    check_selected(
        &at("/items/1/t"),
        r#"{"items":[1,{"t":1}]}"#,
        &[r#"{"items":[1,{}]}"#],
        &[r#"{"items":[1]}"#],
    );
    check_selected(&at("/-"), r#"{"-":1}"#, &["{}"], &[r#"{"a":1}"#]);
    check_selected(&at("/-"), "[1,2]", &[], &["[1]", "[1,2,3]"]);
    check_selected(&at("/01"), "[1,2]", &[], &["[1,3]"]);
    check_selected(&at("/~01~1b"), r#"{"~1/b":1}"#, &["{}"], &[r#"{"/b":1}"#]);
    check_selected(&at("/"), r#"{"":1}"#, &["{}"], &[r#"{"a":1}"#]);
    check_selected(&at(""), "[1]", &["2", "{}"], &["{", "1 2"]);
    check_selected(&at("/99999999999999999999999"), "[1]", &[], &["[2]"]);
}

#[test]
fn f_06_only_included_values_count() {
    check_selected(
        &select(&["/a", "/b/c"], &[]),
        r#"{"a":1,"b":{"c":2,"d":3},"e":4}"#,
        &[r#"{"b":{"c":2},"a":1}"#, r#"{"a":1,"b":{"c":2,"d":[]},"f":4}"#],
        &[
            r#"{"a":2,"b":{"c":2}}"#,
            r#"{"a":1,"b":{"c":3}}"#,
            r#"{"a":1}"#,
            r#"{"a":1,"b":{"c":null}}"#,
            "{}",
        ],
    );
    check_selected(&select(&["/1"], &[]), "[1,2]", &["[3,2,4]"], &["[1,3]", "[2]", "[]", "[2,1]"]);
    check_selected(&select(&["/a", "/b"], &[]), r#"{"a":1}"#, &[], &[r#"{"b":1}"#]);
    check_selected(
        &select(&["/a"], &["/a/t"]),
        r#"{"a":{"t":1}}"#,
        &[r#"{"a":{"t":2}}"#],
        &["{}", r#"{"a":[]}"#],
    );
}

#[test]
fn f_06_included_values_never_equal_a_whole_document() {
    for (pointer, body) in [("", "1"), ("/a", r#"{"a":1}"#), ("/a", "{}"), ("/a", "\"\"")] {
        assert_ne!(selected(body, &select(&[pointer], &[])), of(body), "{body}");
    }
    for body in ["1", r#"{"b":1,"a":[2]}"#, "{"] {
        assert_eq!(selected(body, &Select::default()), of(body), "nothing selected is everything: {body}");
    }
}

#[test]
fn f_06_ambiguous_json_is_hashed_verbatim_under_any_selection() {
    for ambiguous in ["", "{", r#"{"t":1,"t":2}"#, r#"{"t":{"x":1,"x":1}}"#, r#"{"t":"\ud800"}"#] {
        assert_eq!(selected(ambiguous, &select(&[], &["/t"])), raw(ambiguous), "{ambiguous}");
        assert_eq!(selected(ambiguous, &select(&["/a"], &[])), raw(ambiguous), "{ambiguous}");
    }
}
