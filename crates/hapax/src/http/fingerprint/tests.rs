use http::{HeaderMap, HeaderValue};

use super::*;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// A request as text: fields are `name: value`.
#[derive(Clone, Copy)]
struct Sent<'a> {
    method: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    fields: &'a [&'a str],
    body: &'a [u8],
}

const POST: Sent<'_> = Sent { method: "POST", path: "/orders", query: None, fields: &[], body: b"" };

fn by(rules: &FingerprintRules, sent: Sent<'_>) -> Result<Fingerprint, BodyRefused> {
    let mut headers = HeaderMap::new();
    for field in sent.fields {
        let (name, value) = field.split_once(':').unwrap();
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value);
    }
    let method = sent.method.parse().unwrap();
    of_request(
        rules,
        &method,
        sent.path,
        sent.query,
        Fields::of(&headers),
        &Bytes::copy_from_slice(sent.body),
    )
}

fn of(sent: Sent<'_>) -> Fingerprint {
    by(&FingerprintRules::default(), sent).unwrap()
}

fn of_body(content_type: &str, body: &str) -> Fingerprint {
    of(Sent { fields: &[&format!("content-type:{content_type}")], body: body.as_bytes(), ..POST })
}

#[test]
fn f_02_method_path_query_type_and_content_count() {
    let text = Sent { fields: &["content-type: text/plain"], body: b"x", ..POST };
    let different = [
        text,
        POST,
        Sent { method: "PUT", ..text },
        Sent { path: "/orders/", ..text },
        Sent { query: Some("a"), ..text },
        Sent { query: Some("a="), ..text },
        Sent { query: Some("b"), ..text },
        Sent { fields: &[], ..text },
        Sent { fields: &["content-type: text/html"], ..text },
        Sent { fields: &["content-type: text/plain", "content-type: text/plain"], ..text },
        Sent { body: b"y", ..text },
        Sent { body: b"x ", ..text },
    ];
    let prints: Vec<_> = different.into_iter().map(of).collect();
    for (at, print) in prints.iter().enumerate() {
        assert_eq!(prints.iter().position(|other| other == print), Some(at), "{at}");
    }
    assert_eq!(of(Sent { query: Some(""), ..text }), of(text), "a ? without a query");
}

/// Fingerprints are stored for days and compared by other processes: their input must not change.
#[test]
fn f_02_the_hashed_input_is_stable() {
    let sent = Sent {
        query: Some("b=1&a=2"),
        fields: &["if-match: \"1\"", "content-type: application/json"],
        body: b"{ \"a\": 1 }",
        ..POST
    };
    let settled = Fingerprint::builder()
        .part("method", b"POST")
        .part("path", b"/orders")
        .part("query", b"a=2&b=1")
        .part("header", b"if-match")
        .part("value", b"\"1\"")
        .part("type", b"application/json")
        .json("body", b"{\"a\":1}")
        .build();
    assert_eq!(of(sent), settled);
}

#[test]
fn f_03_only_configured_headers_count() {
    let with = |field| of(Sent { fields: &[field], ..POST });
    for counts in ["if-match: \"1\"", "if-none-match: *", "api-version: 1", "x-api-version: 1", "if-match:"] {
        assert_ne!(with(counts), of(POST), "{counts}");
    }
    for ignored in [
        "authorization: Bearer x",
        "cookie: a=b",
        "date: Sun, 15 Nov 2026 11:00:00 GMT",
        "user-agent: x",
        "traceparent: 00-1-1-00",
        "x-stainless-retry-count: 1",
        "accept: text/html",
        "content-length: 0",
        "transfer-encoding: chunked",
        "idempotency-key: k",
        "x-anything: 1",
    ] {
        assert_eq!(with(ignored), of(POST), "{ignored}");
    }
    assert_ne!(with("if-match: 1"), with("if-match: 2"));
    assert_ne!(with("api-version: 1"), with("x-api-version: 1"));
}

#[test]
fn f_03_neither_order_nor_case_nor_spacing_of_headers_counts() {
    let with = |fields| of(Sent { fields, ..POST });
    let first = with(&["if-match: \"1\"", "api-version: 2"]);
    assert_eq!(with(&["API-Version:2", "If-Match: \t\"1\"  "]), first);
    assert_ne!(
        with(&["if-match: 1", "if-match: 2"]),
        with(&["if-match: 2", "if-match: 1"]),
        "lines of one name"
    );
    assert_ne!(with(&["if-match: 1", "if-match: 2"]), with(&["if-match: 12"]));
}

#[test]
fn f_03_which_headers_count_is_configurable() {
    let names = |names: &[&'static str]| {
        let names: Vec<HeaderName> = names.iter().map(|name| HeaderName::from_static(name)).collect();
        NeverCounts::check(&names)?;
        let mut rules = FingerprintRules::default();
        rules.set_headers(names);
        Ok::<_, NeverCounts>(rules)
    };
    let sent = Sent { fields: &["x-b: 1", "x-a: 2", "if-match: 3"], ..POST };
    let rules = names(&["x-b", "x-a", "x-b"]).unwrap();
    assert_eq!(rules.header_names(), ["x-a", "x-b"]);
    assert_eq!(by(&rules, sent), by(&names(&["x-a", "x-b"]).unwrap(), sent));
    assert_eq!(by(&rules, sent), by(&rules, Sent { fields: &["x-b: 1", "x-a: 2", "if-match: 4"], ..POST }));
    assert_ne!(by(&rules, sent), by(&rules, Sent { fields: &["x-b: 1", "x-a: 3", "if-match: 3"], ..POST }));
    for never in ["authorization", "cookie", "accept", "accept-language", "x-b3-traceid", "grpc-timeout"] {
        let refused = names(&["x-a", never]).unwrap_err();
        assert_eq!(refused, NeverCounts(HeaderName::from_static(never)));
        assert!(refused.to_string().contains(never));
    }
    assert!(names(&["x-accept"]).is_ok());
}

#[test]
fn f_03_of_a_content_type_only_the_essence_counts() {
    for spelled in ["Application/JSON", " application/json ;charset=utf-8", "application/json; a=\"", JSON] {
        assert_eq!(of_body(spelled, "{ }"), of_body(JSON, "{}"), "{spelled}");
    }
    assert_ne!(of_body("application/problem+json", "{}"), of_body(JSON, "{}"));
}

#[test]
fn f_04_another_query_is_another_request() {
    let with = |query| of(Sent { query: Some(query), ..POST });
    assert_eq!(with("a=1&b=%7e"), with("b=~&%61=1"));
    assert_eq!(with("a=%2f"), with("a=%2F"));
    assert_ne!(with("a=1&a=2"), with("a=2&a=1"));
    assert_ne!(with("a=%20"), with("a=+"));
    assert_ne!(with("a=%2F"), with("a=/"));
}

#[test]
fn f_05_json_is_compared_by_value() {
    for content_type in [JSON, "application/vnd.api+json", "Application/Problem+JSON; charset=utf-8"] {
        assert_eq!(of_body(content_type, r#"{"a":1,"b":2}"#), of_body(content_type, r#"{ "b": 2, "a": 1 }"#));
        assert_ne!(of_body(content_type, "[1,2]"), of_body(content_type, "[2,1]"));
        assert_ne!(of_body(content_type, "{"), of_body(content_type, "{ "), "not JSON: as sent");
    }
    for content_type in ["text/plain", "application/jsonl", "json"] {
        assert_ne!(of_body(content_type, "{}"), of_body(content_type, "{ }"), "{content_type}");
    }
    let twice = |body: &[u8]| {
        of(Sent { fields: &["content-type: application/json", "content-type: text/plain"], body, ..POST })
    };
    assert_ne!(twice(b"{}"), twice(b"{ }"), "a body with two types is not parsed");
}

#[test]
fn f_06_json_values_can_be_excluded() {
    let rules = FingerprintRules {
        json: Select::default().exclude(["/at".parse().unwrap()]),
        ..FingerprintRules::default()
    };
    let with = |body| by(&rules, Sent { fields: &["content-type: application/json"], body, ..POST });
    assert_eq!(with(br#"{"a":1,"at":2}"#), with(br#"{"a":1,"at":3}"#));
    assert_ne!(with(br#"{"a":1,"at":2}"#), with(br#"{"a":2,"at":2}"#));
}

#[test]
fn f_07_forms_are_compared_as_pairs() {
    assert_eq!(of_body(FORM, "b=x+y&a=%31"), of_body(FORM, "a=1&b=x%20y"));
    assert_ne!(of_body(FORM, "a=1&a=2"), of_body(FORM, "a=2&a=1"));
    assert_ne!(of_body(FORM, "a=1&b=2"), of_body(FORM, "a=1b&=2"));
    assert_ne!(of_body(FORM, "a=1%"), of_body(FORM, "%61=1%"), "invalid: as sent");
}

#[test]
fn f_07_multipart_is_compared_part_by_part() {
    let body = |boundary: &str, content: &str| {
        let part = format!("Content-Disposition: form-data; name=a\r\n\r\n{content}");
        let content_type = format!("multipart/form-data; boundary={boundary}");
        of_body(&content_type, &format!("--{boundary}\r\n{part}\r\n--{boundary}--\r\n"))
    };
    assert_eq!(body("x", "1"), body("y", "1"));
    assert_ne!(body("x", "1"), body("x", "2"));
    let broken = |boundary: &str| of_body(&format!("multipart/form-data; boundary={boundary}"), "--x\r\n");
    assert_eq!(broken("x"), broken("x"));
    assert_ne!(broken("x"), broken("y"), "as sent, with the boundary");
}

#[test]
fn f_07_bodies_of_every_media_type_count() {
    for content_type in
        ["", "text/plain", "image/png", "application/grpc", "\u{e9}", "multipart/mixed", FORM, JSON]
    {
        assert_ne!(of_body(content_type, "%1"), of_body(content_type, "%2"), "{content_type}");
    }
}

#[test]
fn f_08_an_empty_body_is_no_body_and_has_no_type() {
    for fields in
        [&["content-type: application/json"][..], &["content-type: text/plain", "content-encoding: gzip"]]
    {
        assert_eq!(of(Sent { fields, ..POST }), of(POST));
    }
    assert_ne!(of(Sent { body: b" ", ..POST }), of(POST));
}

#[test]
fn f_08_encoded_content_counts_as_sent_with_its_codings() {
    let with = |coding: &[&str], body: &[u8]| {
        let coding: Vec<_> = coding.iter().map(|coding| format!("content-encoding:{coding}")).collect();
        let mut fields: Vec<_> = coding.iter().map(String::as_str).collect();
        fields.push("content-type: application/json");
        of(Sent { fields: &fields, body, ..POST })
    };
    assert_ne!(with(&["gzip"], b"{}"), with(&["gzip"], b"{ }"), "encoded bytes are not JSON");
    assert_ne!(with(&["gzip"], b"{}"), with(&[], b"{}"));
    assert_ne!(with(&["gzip"], b"{}"), with(&["br"], b"{}"));
    assert_ne!(with(&["gzip, br"], b"{}"), with(&["br, gzip"], b"{}"));
    assert_eq!(with(&["gzip, br"], b"{}"), with(&[" GZip ,,identity", "Br"], b"{}"));
    assert_eq!(with(&["x-gzip"], b"{}"), with(&["gzip"], b"{}"));
    assert_eq!(with(&["identity"], b"{}"), with(&[], b"{ }"));
    let boundary = |boundary: &str| {
        let content_type = format!("content-type: multipart/mixed; boundary={boundary}");
        of(Sent { fields: &["content-encoding: gzip", &content_type], body: b"x", ..POST })
    };
    assert_ne!(boundary("x"), boundary("y"));
}

#[cfg(feature = "decode")]
#[test]
fn f_08_content_is_decoded_if_configured() {
    let rules = FingerprintRules { decode: Some(DecodeLimits::default()), ..FingerprintRules::default() };
    let with = |coding: &str, body: &[u8]| {
        by(
            &rules,
            Sent {
                fields: &["content-type: application/json", &format!("content-encoding:{coding}")],
                body,
                ..POST
            },
        )
    };
    let plain = of_body(JSON, "1");
    // One stored block with the content `1`.
    let deflated = b"\x01\x01\x00\xfe\xff1";
    assert_eq!(with("deflate", deflated), Ok(plain));
    assert_eq!(with("identity", b" 1"), Ok(plain));
    assert_eq!(with("deflate", b"\x01\x00\x00\xff\xff"), Ok(of(POST)), "nothing, encoded");
    assert_eq!(with("gzip", b""), Ok(of(POST)));
    assert_eq!(with("zstd", deflated), Err(BodyRefused::CodingUnsupported));
    assert_eq!(with("gzip", deflated), Err(BodyRefused::Undecodable));
    let small = DecodeLimits { bytes_max: 0, ..DecodeLimits::default() };
    let rules = FingerprintRules { decode: Some(small), ..FingerprintRules::default() };
    let sent = Sent { fields: &["content-encoding: deflate"], body: deflated, ..POST };
    assert_eq!(by(&rules, sent), Err(BodyRefused::TooLarge));
}

#[test]
fn f_10_only_the_key_counts_if_configured() {
    let rules = FingerprintRules { input: FingerprintInput::Key, ..FingerprintRules::default() };
    assert_eq!(by(&rules, POST), Ok(Fingerprint::empty()));
    assert_eq!(by(&rules, Sent { method: "PUT", body: b"x", ..POST }), Ok(Fingerprint::empty()));
    assert_ne!(of(POST), Fingerprint::empty());
}
