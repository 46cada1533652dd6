use http::HeaderName;

use super::*;

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
}

#[test]
fn only_requests_from_the_console_are_same_origin() {
    for (fields, expected) in [
        (&[("host", "localhost:8081"), ("origin", "http://localhost:8081")][..], true),
        (&[("host", "a.example"), ("origin", "https://a.example")], true),
        (&[("host", "localhost:8081"), ("sec-fetch-site", "same-origin")], true),
        (&[("host", "localhost:8081"), ("origin", "http://localhost:9999")], false),
        (&[("host", "localhost:8081"), ("origin", "http://evil.example")], false),
        (&[("host", "localhost:8081"), ("origin", "null")], false),
        (&[("host", "localhost:8081"), ("sec-fetch-site", "same-site")], false),
        (
            &[
                ("host", "localhost:8081"),
                ("sec-fetch-site", "cross-site"),
                ("origin", "http://localhost:8081"),
            ],
            false,
        ),
        (&[("host", "localhost:8081")], false),
        (&[("origin", "http://localhost:8081")], false),
    ] {
        assert_eq!(is_same_origin(&headers(fields)), expected, "{fields:?}");
    }
}

#[test]
fn the_scheme_of_the_token_is_case_insensitive() {
    for (value, expected) in [
        ("Bearer abc", Some(&b"abc"[..])),
        ("bearer  abc ", Some(b"abc")),
        ("Basic abc", None),
        ("Bearer", None),
        ("", None),
    ] {
        assert_eq!(bearer(&headers(&[("authorization", value)])), expected, "{value:?}");
    }
}

#[test]
fn a_name_is_limited_and_has_no_control_characters() {
    assert_eq!(sanitized_name(" Ada\n\u{1b}[2J "), "Ada[2J");
    assert_eq!(sanitized_name(&"x".repeat(1000)).len(), NAME_CHARS_MAX);
}
