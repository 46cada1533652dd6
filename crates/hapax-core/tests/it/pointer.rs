//! Strings by JSON pointer.

use hapax_core::{JsonPointer, JsonStringError, json_string_at, json_text_at};

fn at(pointer: &str, text: &str) -> Result<Option<String>, JsonStringError> {
    let pointer: JsonPointer = pointer.parse().unwrap();
    json_string_at(text.as_bytes(), &pointer).map(|found| found.map(|content| content.into_owned()))
}

fn found(content: &str) -> Result<Option<String>, JsonStringError> {
    Ok(Some(content.to_owned()))
}

#[test]
fn resolves_the_examples_of_the_rfc() {
    let text = r#"{"foo": ["bar", "baz"], "": "0", "a/b": "1", "c%d": "2", "e^f": "3", "g|h": "4",
        "i\\j": "5", "k\"l": "6", " ": "7", "m~n": "8", "~1": "9", "deep": {"er": [{"id": "d"}]}}"#;
    let cases = [
        ("/foo/0", "bar"),
        ("/foo/1", "baz"),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
        ("/~01", "9"),
        ("/deep/er/0/id", "d"),
    ];
    for (pointer, content) in cases {
        assert_eq!(at(pointer, text), found(content), "{pointer}");
    }
    assert_eq!(at("", r#""whole""#), found("whole"));
}

#[test]
fn a_missing_value_and_null_are_none() {
    let cases = [
        ("/id", "{}"),
        ("/id", r#"{"id": null}"#),
        ("/id", r#"{"ID": "x"}"#),
        ("/id", r#"["id"]"#),
        ("/id/deeper", r#"{"id": "x"}"#),
        ("/2", r#"["a", "b"]"#),
        ("/-", r#"["a", "b"]"#),
        ("/01", r#"["a", "b"]"#),
        ("/+1", r#"["a", "b"]"#),
        ("/99999999999999999999999", r#"["a", "b"]"#),
        ("/id", "null"),
    ];
    for (pointer, text) in cases {
        assert_eq!(at(pointer, text), Ok(None), "{pointer} in {text}");
    }
}

#[test]
fn a_repeated_name_is_an_error_on_the_path_only() {
    let repeated = [
        ("/id", r#"{"id": "x", "id": "x"}"#),
        ("/id", r#"{"id": "x", "\u0069d": "y"}"#),
        ("/id", r#"{"id": null, "id": "x"}"#),
        ("/a/id", r#"{"a": {"id": "x"}, "a": {}}"#),
    ];
    for (pointer, text) in repeated {
        assert_eq!(at(pointer, text), Err(JsonStringError::Repeated), "{text}");
    }
    assert_eq!(at("/id", r#"{"a": 1, "a": 2, "id": "x"}"#), found("x"));
}

#[test]
fn a_value_of_another_kind_is_named_in_the_error() {
    let cases = [
        (r#"{"id": 1}"#, "a number"),
        (r#"{"id": true}"#, "a boolean"),
        (r#"{"id": ["x"]}"#, "an array"),
        (r#"{"id": {}}"#, "an object"),
    ];
    for (text, kind) in cases {
        assert_eq!(at("/id", text), Err(JsonStringError::NotString { found: kind }), "{text}");
    }
}

#[test]
fn json_text_at_accepts_numbers_and_booleans() {
    let text_at = |text: &str| {
        let id: JsonPointer = "/id".parse().unwrap();
        json_text_at(text.as_bytes(), &id).map(|found| found.map(|content| content.into_owned()))
    };
    let cases = [("\"x\"", "x"), ("1", "1"), ("-1.50E+2", "-1.50E+2"), ("true", "true"), ("false", "false")];
    for (value, content) in cases {
        assert_eq!(text_at(&format!(r#"{{"id": {value}}}"#)), found(content));
    }
    for text in ["{}", r#"{"id": null}"#] {
        assert_eq!(text_at(text), Ok(None), "{text}");
    }
    for (text, kind) in [(r#"{"id": ["x"]}"#, "an array"), (r#"{"id": {}}"#, "an object")] {
        assert_eq!(text_at(text), Err(JsonStringError::NotString { found: kind }), "{text}");
    }
}

#[test]
fn invalid_json_is_an_error() {
    let deep = "[".repeat(1_000_000);
    for text in ["", "{", r#"{"id": "x"} x"#, r#"{"id": 'x'}"#, r#"{"id": "x",}"#, &deep] {
        assert!(matches!(at("/id", text), Err(JsonStringError::NotJson { .. })));
    }
}

#[test]
fn malformed_pointers_are_refused_with_the_position() {
    let cases = [("id", "position 0"), ("/a/~", "position 3"), ("/~2", "position 1"), ("#/id", "position 0")];
    for (text, place) in cases {
        let error = text.parse::<JsonPointer>().unwrap_err();
        assert!(error.to_string().contains(place), "{text}: {error}");
    }
}

#[test]
fn member_escapes_every_name() {
    for name in ["sub", "https://example.org/tenant", "a~b/c", "~1", ""] {
        let pointer = JsonPointer::member(name);
        assert_eq!(pointer.as_str().parse::<JsonPointer>().unwrap(), pointer, "{name}");
        assert_eq!(pointer.names(), [name.into()]);
        let text = serde_json::json!({ name: "x" }).to_string();
        assert_eq!(json_string_at(text.as_bytes(), &pointer).unwrap().as_deref(), Some("x"), "{name}");
    }
}
