use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_core::{JsonStringError, Key, KeyError, KeyFields, KeyFormat, KeyRules};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    AHEAD_MAX, DerivedKeys, Fields, FirstSent, FirstSentFault, KeyFault, KeyFaultReason, KeyPlace, KeySource,
};

/// Must not appear in any refusal.
const CANARY: &str = "canary-4711";

type Lines<'a> = &'a [(&'static str, &'a str)];

fn headers(lines: Lines<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn source() -> KeySource {
    from(&[
        "header:idempotency-key",
        "header:x-request-id",
        "header:cko-idempotency-key",
        "json:/meta/request_id",
    ])
}

fn from(places: &[&str]) -> KeySource {
    KeySource { places: places.iter().map(|text| place(text)).collect(), ..KeySource::default() }
}

fn place(text: &str) -> KeyPlace {
    text.parse().unwrap()
}

fn fault(at: &str, why: KeyFaultReason) -> KeyFault {
    KeyFault { place: place(at), why }
}

#[track_caller]
fn ask(source: &KeySource, lines: Lines<'_>, body: &str) -> Result<Option<String>, KeyFault> {
    ask_at(source, None, lines, body)
}

#[track_caller]
fn ask_at(
    source: &KeySource,
    query: Option<&str>,
    lines: Lines<'_>,
    body: &str,
) -> Result<Option<String>, KeyFault> {
    let headers = headers(lines);
    let found = source.in_head(Fields::of(&headers), query)?;
    let key = source.in_body(found, &headers, body.as_bytes())?;
    Ok(key.map(|key| key.as_str().to_owned()))
}

fn found(key: &str) -> Result<Option<String>, KeyFault> {
    Ok(Some(key.to_owned()))
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn k_01_k_02_k_03_quoted_and_bare_keys_are_equal() {
    let source = KeySource::default();
    for value in ["a-1", "\"a-1\"", " a-1 ", "\"a-1\";v=1"] {
        assert_eq!(ask(&source, &[("idempotency-key", value)], ""), found("a-1"), "{value}");
    }
    assert_eq!(ask(&source, &[], ""), Ok(None));
}

#[test]
fn k_05_k_07_k_08_a_header_without_a_usable_key_is_refused_by_its_name() {
    let rules = KeyRules::new().length_min(4).format(KeyFormat::Uuid);
    let cases = [
        (KeyRules::new(), "", KeyError::Empty),
        (KeyRules::new(), "\"  \"", KeyError::OnlySpaces),
        (KeyRules::new(), "canary-4711;", KeyError::NeedsQuotes { at: 11 }),
        (KeyRules::new(), "canary-4711é", KeyError::Character { at: 11 }),
        (KeyRules::new().strict(), CANARY, KeyError::Unquoted),
        (rules.clone(), "a", KeyError::TooShort { length: 1, length_min: 4 }),
        (rules, CANARY, KeyError::Format { expected: "a UUID" }),
    ];
    for (rules, value, error) in cases {
        let source = KeySource { rules, ..source() };
        let found = ask(&source, &[("x-request-id", value)], "").unwrap_err();
        assert!(found.detail().starts_with("`x-request-id`: ") && !found.detail().contains(CANARY));
        assert_eq!(found, fault("header:x-request-id", KeyFaultReason::Key(error)));
    }
}

#[test]
fn k_06_two_lines_and_lists_are_refused_even_when_they_are_equal() {
    let cases: [Lines<'_>; 4] = [
        &[("idempotency-key", "a"), ("idempotency-key", "a")],
        &[("idempotency-key", "\"a"), ("idempotency-key", "b\"")],
        &[("idempotency-key", "a, a")],
        &[("idempotency-key", "a"), ("x-request-id", "a"), ("x-request-id", "a")],
    ];
    for lines in cases {
        let fault = ask(&source(), lines, "").unwrap_err();
        let KeyFaultReason::Key(error) = fault.why else { panic!("{lines:?}: {fault:?}") };
        assert!(matches!(error, KeyError::ManyLines { lines: 2 } | KeyError::List { .. }), "{error:?}");
    }
}

#[test]
fn k_09_every_configured_place_gives_the_key() {
    let body = r#"{"meta": {"request_id": "a"}}"#;
    assert_eq!(ask(&source(), &[("x-request-id", "a")], ""), found("a"));
    assert_eq!(ask(&source(), &[("cko-idempotency-key", "\"a\"")], ""), found("a"));
    assert_eq!(ask(&source(), &[JSON], body), found("a"));
    assert_eq!(
        ask(&source(), &[JSON, ("idempotency-key", "\"a\""), ("x-request-id", "a")], body),
        found("a")
    );
    assert_eq!(ask(&KeySource::default(), &[JSON, ("x-request-id", "a")], body), Ok(None));
}

#[test]
fn k_09_two_places_with_different_keys_are_refused() {
    let body = r#"{"meta": {"request_id": "canary-4711"}}"#;
    let cases: [(Lines<'_>, &str); 4] = [
        (&[("idempotency-key", "a"), ("x-request-id", CANARY)], "header:x-request-id"),
        (&[("x-request-id", CANARY), ("cko-idempotency-key", "A")], "header:cko-idempotency-key"),
        (&[JSON, ("idempotency-key", "CANARY-4711")], "json:/meta/request_id"),
        (&[JSON, ("x-request-id", "a")], "json:/meta/request_id"),
    ];
    for (lines, at) in cases {
        let found = ask(&source(), lines, body).unwrap_err();
        let described = place(at).described();
        assert!(
            found.detail().contains(&described) && !found.detail().contains(CANARY),
            "{}",
            found.detail()
        );
        assert_eq!(found, fault(at, KeyFaultReason::Differs));
    }
}

fn may_be_in_body(source: &KeySource, content_type: &'static str) -> bool {
    source.may_be_in_body(Fields::of(&HeaderMap::from_iter([(
        CONTENT_TYPE,
        HeaderValue::from_static(content_type),
    )])))
}

#[test]
fn k_09_only_json_bodies_are_parsed() {
    let body = r#"{"meta": {"request_id": "a"}}"#;
    let amazon = ["application/x-amz-json-1.0", "Application/X-Amz-JSON-1.1; charset=utf-8"];
    let usual =
        ["application/json", "Application/JSON; charset=utf-8", "text/json", "application/order+json"];
    for kind in usual.into_iter().chain(amazon) {
        assert_eq!(ask(&source(), &[("content-type", kind)], body), found("a"), "{kind}");
        assert!(may_be_in_body(&source(), kind) && !may_be_in_body(&KeySource::default(), kind), "{kind}");
    }
    for kind in ["", "json", "text/plain", "application/jsonp", "application/x; a=+json", "application/xml"] {
        assert_eq!(ask(&source(), &[("content-type", kind)], body), Ok(None), "{kind}");
        assert!(!may_be_in_body(&source(), kind), "{kind}");
    }
    assert_eq!(ask(&source(), &[], body), Ok(None));
    assert_eq!(ask(&source(), &[("content-type", "text/plain"), JSON], body), found("a"));
}

#[test]
fn k_09_a_body_without_the_key_has_none() {
    for body in ["", "{}", "[]", r#"{"meta": null}"#, r#"{"meta": {"request_id": null}}"#] {
        assert_eq!(ask(&source(), &[JSON], body), Ok(None), "{body}");
        assert_eq!(ask(&source(), &[JSON, ("idempotency-key", "a")], body), found("a"), "{body}");
    }
}

#[test]
fn k_09_a_number_or_a_boolean_in_the_body_is_its_text() {
    for (value, text) in [("4711", "4711"), ("-0.50e+3", "-0.50e+3"), ("true", "true"), ("false", "false")] {
        let body = format!(r#"{{"meta": {{"request_id": {value}}}}}"#);
        assert_eq!(ask(&source(), &[JSON], &body), found(text));
        assert_eq!(ask(&source(), &[JSON, ("idempotency-key", text)], &body), found(text));
    }
    let long = format!(r#"{{"meta": {{"request_id": {}}}}}"#, "1".repeat(300));
    let fault = ask(&source(), &[JSON], &long).unwrap_err();
    assert!(matches!(fault.why, KeyFaultReason::Key(KeyError::TooLong { .. })));
}

#[test]
fn k_08_a_uuid_is_one_key_with_and_without_hyphens_in_every_place() {
    let source = KeySource { rules: KeyRules::new().format(KeyFormat::Uuid), ..source() };
    let (plain, hyphens) = ("8e03978e40d543e8bc936894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324");
    let body = format!(r#"{{"meta": {{"request_id": "{plain}"}}}}"#);
    assert_eq!(ask(&source, &[("idempotency-key", plain)], ""), found(hyphens));
    assert_eq!(ask(&source, &[JSON, ("idempotency-key", hyphens)], &body), found(hyphens));
}

#[test]
fn k_09_a_body_in_which_the_key_cannot_be_read_is_refused() {
    let place = |error| fault("json:/meta/request_id", KeyFaultReason::Json(error));
    let cases = [
        (r#"{"meta": {"request_id": "canary-4711", "request_id": "a"}}"#, place(JsonStringError::Repeated)),
        (r#"{"meta": {"request_id": [4711]}}"#, place(JsonStringError::NotString { found: "an array" })),
        (
            r#"{"meta": {"request_id": "canary-4711"}"#,
            place(JsonStringError::NotJson { at: 38, why: "a comma or } was expected" }),
        ),
    ];
    for (body, fault) in cases {
        for lines in [&[JSON][..], &[JSON, ("idempotency-key", "a")]] {
            let found = ask(&source(), lines, body).unwrap_err();
            assert!(!found.detail().contains("4711"), "{}", found.detail());
            assert_eq!(found, fault);
        }
    }
}

#[test]
fn k_08_a_key_in_the_body_follows_the_same_rules_without_quotes() {
    let check = |rules: KeyRules, content: &str, error: KeyError| {
        let body = serde_json::json!({ "meta": { "request_id": content } }).to_string();
        let fault = ask(&KeySource { rules, ..source() }, &[JSON], &body).unwrap_err();
        assert_eq!(fault, self::fault("json:/meta/request_id", KeyFaultReason::Key(error)));
    };
    check(KeyRules::new(), "", KeyError::Empty);
    check(KeyRules::new(), "a\tb", KeyError::Character { at: 1 });
    check(KeyRules::new().length_max(3), "abcd", KeyError::TooLong { length: 4, length_max: 3 });
    check(KeyRules::new().format(KeyFormat::Ulid), "abcd", KeyError::Format { expected: "a ULID" });
    let strict = KeySource { rules: KeyRules::new().strict(), ..source() };
    assert_eq!(ask(&strict, &[JSON], r#"{"meta": {"request_id": "a"}}"#), found("a"));
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");

#[test]
fn k_09_a_parameter_of_the_query_and_a_field_of_a_form_give_the_key() {
    let source = from(&["header:idempotency-key", "query:ClientToken", "form:ClientToken"]);
    let at = |query: &str, lines: Lines<'_>, body: &str| ask_at(&source, Some(query), lines, body);
    assert_eq!(at("Action=Run&ClientToken=a-1", &[], ""), found("a-1"));
    assert_eq!(at("Client%54oken=a%2D1&x", &[], ""), found("a-1"));
    assert_eq!(at("clienttoken=b", &[FORM], "Action=Run&ClientToken=a+1"), found("a 1"));
    assert_eq!(at("ClientToken=a", &[FORM, ("idempotency-key", "a")], "ClientToken=a"), found("a"));
    assert_eq!(at("Action=Run", &[FORM], "Action=Run"), Ok(None));
    assert_eq!(at("", &[("content-type", "text/plain")], "ClientToken=a"), Ok(None));
    assert_eq!(ask(&source, &[], ""), Ok(None));
}

#[test]
fn k_09_an_ambiguous_query_or_form_is_refused() {
    let source = from(&["header:idempotency-key", "query:token", "form:token"]);
    let check = |query: &str, body: &str, at: &str, why: KeyFaultReason| {
        let found = ask_at(&source, Some(query), &[FORM, ("idempotency-key", "a")], body).unwrap_err();
        assert!(!found.detail().contains(CANARY), "{}", found.detail());
        assert_eq!(found, fault(at, why), "{query} {body}");
    };
    check("token=a&token=a", "", "query:token", KeyFaultReason::Repeated);
    check("token=a&x=%zz", "", "query:token", KeyFaultReason::NotPairs);
    check("token=", "", "query:token", KeyFaultReason::Key(KeyError::Empty));
    check("token=canary-4711", "", "query:token", KeyFaultReason::Differs);
    check("token=%C3%A9", "", "query:token", KeyFaultReason::Key(KeyError::Character { at: 0 }));
    check("", "token=a&token=a", "form:token", KeyFaultReason::Repeated);
    check("", "token=canary-4711", "form:token", KeyFaultReason::Differs);
}

#[test]
fn k_11_a_key_is_derived_only_from_a_json_body_with_all_fields() {
    let fields = KeyFields::new(["/order_id", "/amount"]).unwrap();
    let source = KeySource {
        derived: Some(DerivedKeys { fields: fields.clone(), window: None }),
        ..KeySource::default()
    };
    let derive = |source: &KeySource, lines: Lines<'_>, body: &str| {
        source.derive(&headers(lines), body.as_bytes()).map(|key| key.map(|key| key.as_str().to_owned()))
    };
    let body = r#"{"amount": 12.50, "order_id": "o-1", "note": 1}"#;
    let key = fields.key_of_json(body.as_bytes()).unwrap();
    assert_eq!(derive(&source, &[JSON], body), Ok(Some(key.as_str().to_owned())));
    assert_eq!(derive(&source, &[JSON], r#"{"order_id": "o-1", "amount": null}"#), Ok(None));
    assert_eq!(derive(&source, &[JSON], ""), Ok(None));
    assert_eq!(derive(&source, &[("content-type", "text/plain")], body), Ok(None));
    assert_eq!(derive(&KeySource::default(), &[JSON], body), Ok(None));
    assert!(derive(&source, &[JSON], r#"{"order_id": ["o-1"], "amount": 1}"#).is_err());
    assert!(may_be_in_body(&source, "application/json") && !may_be_in_body(&source, "text/plain"));
    assert!(Key::new(key.as_str()).is_ok());
}

fn check_first_sent(values: &[&str], now: SystemTime) -> Result<(), FirstSentFault> {
    let header = HeaderName::from_static("repeatability-first-sent");
    let source = KeySource {
        first_sent: Some(FirstSent { header, window: Duration::from_secs(300) }),
        ..KeySource::default()
    };
    let lines: Vec<_> = values.iter().map(|value| ("repeatability-first-sent", *value)).collect();
    source.check_first_sent(&headers(&lines), now)
}

#[test]
fn d_02_a_first_sending_is_accepted_only_within_the_window() {
    let sent = Duration::from_secs(784_111_777);
    let at = |now| check_first_sent(&["Sun, 06 Nov 1994 08:49:37 GMT"], UNIX_EPOCH + now);
    let second = Duration::from_secs(1);
    let window = Duration::from_secs(300);
    assert_eq!(at(sent), Ok(()));
    assert_eq!(at(sent + window), Ok(()));
    assert_eq!(at(sent + window + second), Err(FirstSentFault::OutsideWindow));
    assert_eq!(at(sent - AHEAD_MAX), Ok(()));
    assert_eq!(at(sent - AHEAD_MAX - second), Err(FirstSentFault::OutsideWindow));
    assert_eq!(at(Duration::ZERO), Err(FirstSentFault::OutsideWindow));
}

#[test]
fn d_02_a_missing_or_malformed_first_sending_is_invalid() {
    let cases: [&[&str]; 9] = [
        &[],
        &[""],
        &["now"],
        &["Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"],
        &["Sunday, 06-Nov-94 08:49:37 GMT"],
        &["Sun Nov  6 08:49:37 1994"],
        &["Mon, 06 Nov 1994 08:49:37 GMT"],
        &["Thu, 31 Feb 1994 08:49:37 GMT"],
        &["1994-11-06T08:49:37Z"],
    ];
    for values in cases {
        let fault = check_first_sent(values, UNIX_EPOCH).unwrap_err();
        assert!(matches!(fault, FirstSentFault::Invalid { .. }), "{values:?}");
    }
    let unasked = KeySource::default();
    assert_eq!(unasked.check_first_sent(&HeaderMap::new(), UNIX_EPOCH), Ok(()));
}
