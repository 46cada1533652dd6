use proptest::prelude::*;

use super::*;

fn text(bytes: &[u8]) -> Option<String> {
    let mut out = b"before ".to_vec();
    append(&mut out, bytes)?;
    let text = String::from_utf8(out).expect("canonical text is UTF-8");
    text.strip_prefix("before ").map(str::to_owned)
}

/// The canonical text through the tree.
fn by_tree(bytes: &[u8]) -> Option<String> {
    let document = canonical::read(bytes)?;
    let mut text = String::new();
    canonical::print(&mut text, &document);
    Some(text)
}

#[test]
fn f_05_members_are_sorted_at_every_depth() {
    let check = |json: &str, canonical: Option<&str>| {
        assert_eq!(text(json.as_bytes()).as_deref(), canonical, "{json}");
        assert_eq!(by_tree(json.as_bytes()).as_deref(), canonical, "{json}");
    };
    check(
        r#" { "b" : [ 1 , { "z":1, "y": {} } ] , "a" : null } "#,
        Some(r#"{"a":null,"b":[1,{"y":{},"z":1}]}"#),
    );
    check(r#"{"a":1,"b":2}"#, Some(r#"{"a":1,"b":2}"#));
    check(r#"{"\u0061":"\u0062"}"#, Some(r#"{"a":"b"}"#));
    check("[]", Some("[]"));
    check("{}", Some("{}"));
    check("1e3", Some("1e3"));
    for none in
        ["", " ", "{", "[1,", "[1 2]", "{,}", "{\"a\"}", "{\"a\":1,}", "[1],", "nul", "{\"a\":1 \"b\":2}"]
    {
        check(none, None);
    }
    check(r#"{"b":1,"a":2,"b":3}"#, None);
    check(r#"[{"a":{"c":1,"c":1}}]"#, None);
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    check(&deep(crate::JSON_DEPTH_MAX), Some(&deep(crate::JSON_DEPTH_MAX)));
    check(&deep(crate::JSON_DEPTH_MAX + 1), None);
}

proptest! {
    #[test]
    fn f_05_one_pass_equals_the_tree(json in r#"[\[\]{}:,"\\a-c0-2 .é-]{0,24}"#) {
        prop_assert_eq!(text(json.as_bytes()), by_tree(json.as_bytes()));
    }

    #[test]
    fn f_05_one_pass_equals_the_tree_on_documents(json in document()) {
        prop_assert_eq!(text(json.as_bytes()), by_tree(json.as_bytes()));
    }
}

/// Mostly well-formed documents, with occasional duplicate names.
fn document() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![Just("null"), Just("true"), Just("1.0"), Just("\"x\""), Just("\"\\n\"")];
    leaf.prop_map(str::to_owned).prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec(("[a-e\u{e9}\u{1f600}]{1,2}", inner), 0..5).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}
