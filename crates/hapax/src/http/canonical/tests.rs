use http::header::{AUTHORIZATION, EXPECT};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::header::Fields;
use super::*;

#[test]
fn f_04_percent_encoding_has_one_spelling() {
    let table = [
        ("", ""),
        ("/orders/7", "/orders/7"),
        ("/%6frders", "/orders"),
        ("/%41%7a%30%2D%2e%5F%7E", "/Az0-._~"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%2Fb", "/a%2Fb"),
        ("/%e2%82%ac/é", "/%E2%82%AC/é"),
        ("/%2541", "/%2541"),
        ("/%2b%20+", "/%2B%20+"),
        // Dots and slashes are left to the origin.
        ("/a/../b", "/a/../b"),
        ("/a/%2e%2e/b", "/a/../b"),
        ("//a//", "//a//"),
    ];
    for (raw, spelled) in table {
        assert_eq!(path(raw), spelled, "{raw}");
        assert_eq!(path(spelled), spelled, "{raw}: canonicalisation is idempotent");
    }
}

/// Decoding only the valid part of `%2%35` would give `%25`, which has another meaning.
#[test]
fn f_04_a_path_with_an_invalid_percent_is_unchanged() {
    for raw in ["%", "%4", "/%2%35", "/%zz%41", "/%41%", "/%4é", "/%+1", "%%41"] {
        assert_eq!(path(raw), raw);
        assert_eq!(query(raw), raw);
    }
}

#[test]
fn f_04_order_counts_only_within_one_name() {
    let table = [
        ("b=1&a=2", "a=2&b=1"),
        ("a=2&b=1", "a=2&b=1"),
        ("b=2&a=0&b=1", "a=0&b=2&b=1"),
        ("b=1&a=0&b=2", "a=0&b=1&b=2"),
        ("b&%61=%7e&a", "a=~&a&b"),
        ("a=&a", "a=&a"),
        ("a&a=", "a&a="),
        ("a=1&&b", "&a=1&b"),
        ("q=a+b", "q=a+b"),
        ("q=a%20b", "q=a%20b"),
        ("b=%26a=1&a", "a&b=%26a=1"),
        ("a=b=c", "a=b=c"),
    ];
    for (raw, ordered) in table {
        assert_eq!(query(raw), ordered, "{raw}");
        assert_eq!(query(ordered), ordered, "{raw}: canonicalisation is idempotent");
    }
}

fn pairs(body: &str) -> Option<Vec<(String, String)>> {
    let text = |bytes: Cow<'_, [u8]>| String::from_utf8_lossy(&bytes).into_owned();
    let pairs = form::pairs(body.as_bytes())?;
    Some(pairs.into_iter().map(|(name, value)| (text(name), text(value))).collect())
}

#[test]
fn f_07_forms_are_decoded_pairs() {
    let table: &[(&str, &[(&str, &str)])] = &[
        ("", &[]),
        ("&&", &[]),
        ("b=1&a=2", &[("a", "2"), ("b", "1")]),
        ("a=2&a=1", &[("a", "2"), ("a", "1")]),
        ("a=x+y%20z%2b", &[("a", "x y z+")]),
        ("%61=%c3%A9&a=é", &[("a", "é"), ("a", "é")]),
        ("a", &[("a", "")]),
        ("a=&=1", &[("", "1"), ("a", "")]),
        ("a=b=c", &[("a", "b=c")]),
        ("a=1%262", &[("a", "1&2")]),
        ("i[][b]=1&i[][a]=2&h=3", &[("h", "3"), ("i[][b]", "1"), ("i[][a]", "2")]),
    ];
    for (body, expected) in table {
        let expected = expected.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(pairs(body), Some(expected.collect()), "{body}");
    }
}

#[test]
fn f_07_an_invalid_form_has_no_pairs() {
    for body in ["a=%", "a=%4", "a=%zz", "%=1", "a=%+1"] {
        assert_eq!(pairs(body), None, "{body}");
    }
    assert!(pairs(&"a&".repeat(form::PAIRS_MAX)).is_some());
    assert_eq!(pairs(&"a&".repeat(form::PAIRS_MAX + 1)), None);
}

/// Parameters as `name(value)`.
fn parameters(value: &str) -> Option<String> {
    let parameters = header::parameters(value.as_bytes())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(parameters.iter().map(|(name, value)| format!("{}({})", text(name), text(value))).collect())
}

#[test]
fn f_03_parameters_are_separated() {
    let table = [
        ("text/html", Some("")),
        ("text/html;", Some("")),
        ("text/html; charset=utf-8", Some("charset(utf-8)")),
        ("a;B=\"x; y\" ; c = d", Some("b(x; y)c(d)")),
        (r#"a;b="x\"y\\";;c=d"#, Some(r#"b(x\"y\\)c(d)"#)),
        ("a;b=", Some("b()")),
        ("a;b", None),
        ("a;b=\"x", None),
        ("a;b=\"x\\\"", None),
        ("a;b=\"x\"y", None),
        ("a;b=x\"y\"", None),
    ];
    for (value, expected) in table {
        assert_eq!(parameters(value).as_deref(), expected, "{value}");
    }
}

/// Few fields are searched linearly and many by hash; the result is the same.
#[test]
fn field_lines_are_found_in_small_and_large_heads() {
    let [key, twice, none] = ["idempotency-key", "accept", "expect"].map(HeaderName::from_static);
    for others in [0, 3, 40] {
        let mut headers = HeaderMap::new();
        headers.append(twice.clone(), HeaderValue::from_static("1"));
        for other in 0..others {
            headers.append(HeaderName::try_from(format!("x-{other}")).unwrap(), HeaderValue::from(other));
        }
        headers.append(key.clone(), HeaderValue::from_static("k"));
        let of = |headers: &HeaderMap, name: &HeaderName| -> Vec<Vec<u8>> {
            Fields::of(headers).lines(name).map(|line| line.as_bytes().to_vec()).collect()
        };
        assert_eq!(of(&headers, &key), [b"k"], "{others}");
        assert_eq!(of(&headers, &twice), [b"1"], "{others}");
        headers.append(twice.clone(), HeaderValue::from_static("2"));
        assert_eq!(of(&headers, &twice), [b"1", b"2"], "{others}");
        assert_eq!(of(&headers, &key), [b"k"], "{others}");
        assert_eq!(of(&headers, &none), Vec::<Vec<u8>>::new(), "{others}");
        assert_eq!(header::first(&headers, &twice).unwrap(), "1", "{others}");
        assert_eq!(header::first(&headers, &none), None, "{others}");
    }
}

#[test]
fn an_absent_field_that_shares_a_bit_is_not_found() {
    let headers = HeaderMap::from_iter([(HeaderName::from_static("x-request-id"), HeaderValue::from(1))]);
    let fields = Fields::of(&headers);
    assert!(fields.may_have(&AUTHORIZATION), "the two share a bit");
    assert_eq!(fields.first(&AUTHORIZATION), None);
    assert_eq!(fields.lines(&AUTHORIZATION).count(), 0);
    assert!(!fields.may_have(&EXPECT));
}
