//! The keys were computed with Python: `hashlib.sha256(("cloudevent:receive:" + json.dumps([source,
//! id])).encode()).hexdigest()[:32]`.

use super::*;

const JSON: (&str, &str) = ("content-type", "application/cloudevents+json; charset=utf-8");
/// Of `/mycontext/subcontext` and `1234-1234-1234`.
const PLAIN: &str = "c6141a6ea56147fc12dc609a9c499626";
/// Of `/€ 😀` and `a"b`.
const ODD: &str = "ad8a45cb3c5ac5f2e3017c0a009f5e9f";

fn verify(lines: &[(&str, &str)], body: &[u8]) -> Result<Key, WebhookFault> {
    verify_by(&Webhook::cloud_events(), lines, body, at(0))
}

fn binary(source: &str, id: &str) -> Result<Key, WebhookFault> {
    verify(&[("ce-source", source), ("ce-id", id), ("content-type", "application/json")], b"{}")
}

#[test]
fn p_03_cloud_events_have_one_key_in_both_modes() {
    let structured = |body: &str| verify(&[JSON], body.as_bytes());
    assert_eq!(binary("/mycontext/subcontext", "1234-1234-1234"), key(PLAIN));
    assert_eq!(
        structured(r#"{"specversion":"1.0","id":"1234-1234-1234","source":"/mycontext/subcontext"}"#),
        key(PLAIN)
    );
    assert_eq!(binary("/%E2%82%AC%20%f0%9f%98%80", "a%22b"), key(ODD));
    assert_eq!(binary("/\u{20ac} \u{1f600}", r#""a\"b""#), key(ODD));
    assert_eq!(structured(r#"{"id":"a\"b","source":"/\u20ac 😀","data":{"id":1}}"#), key(ODD));
    let no_type = verify(&[("ce-source", "/mycontext/subcontext"), ("ce-id", "1234-1234-1234")], b"");
    assert_eq!(no_type, key(PLAIN));
}

#[test]
fn p_03_cloud_events_are_identified_by_source_and_id() {
    let distinct =
        [binary("a", "b"), binary("b", "a"), binary("a:b", "c"), binary("a", "b:c"), binary("a, b", "c")];
    for (at, one) in distinct.iter().enumerate() {
        assert!(one.is_ok(), "{one:?}");
        assert!(!distinct[at + 1..].contains(one), "{at}");
    }
    let long = "i".repeat(5000);
    assert_ne!(binary("a", &long).unwrap(), binary("a", &long[1..]).unwrap());
}

#[test]
fn p_03_the_content_type_decides_the_mode_of_a_cloud_event() {
    let body = br#"{"id":"1234-1234-1234","source":"/mycontext/subcontext"}"#;
    let (source, id) = (("ce-source", "/other"), ("ce-id", "other"));
    assert_eq!(verify(&[JSON, source, id], body), key(PLAIN));
    assert_eq!(verify(&[("content-type", " Application/CloudEvents+JSON ")], body), key(PLAIN));
    let unclear = |content_type| {
        assert_eq!(verify(&[("content-type", content_type), source, id], body), key_unclear("content-type"));
    };
    unclear("application/cloudevents-batch+json");
    unclear("application/cloudevents+avro");
    unclear("application/cloudevents");
    assert_eq!(verify(&[JSON, JSON], body), key_unclear("content-type"));
}

#[test]
fn p_03_a_binary_cloud_event_names_its_source_and_id_once() {
    let check = |lines: &[(&str, &str)], expected| assert_eq!(verify(lines, b"{}"), expected, "{lines:?}");
    let (source, id) = (("ce-source", "/s"), ("ce-id", "1"));
    check(&[source], key_missing("ce-id"));
    check(&[id], key_missing("ce-source"));
    check(&[source, id, id], key_unclear("ce-id"));
    check(&[source, source, id], key_unclear("ce-source"));
    check(&[source, ("ce-id", "")], key_invalid("id", KeyError::Empty));
    check(&[("ce-source", "\"\""), id], key_invalid("source", KeyError::Empty));
    for broken in ["%", "%4", "%4g", "%C0%A0", "%ff", "\"open", "\"a\"b", "\"a\\"] {
        check(&[source, ("ce-id", broken)], key_unclear("ce-id"));
    }
}

#[test]
fn p_03_a_structured_cloud_event_names_its_source_and_id_once() {
    let check = |body: &[u8], expected| {
        assert_eq!(verify(&[JSON], body), expected, "{}", body.escape_ascii());
    };
    check(br#"{"source":"/s"}"#, key_missing("id"));
    check(br#"{"id":"1"}"#, key_missing("source"));
    check(br#"{"id":"","source":"/s"}"#, key_invalid("id", KeyError::Empty));
    check(br#"{"id":"1","source":""}"#, key_invalid("source", KeyError::Empty));
    let unclear = || key_unclear("source` and `id");
    check(br#"{"id":"1","source":"/s","id":"2"}"#, unclear());
    check(br#"{"id":"1","source":"/s","source":"/s"}"#, unclear());
    check(br#"{"id":1.5,"source":"/s"}"#, unclear());
    assert_eq!(
        verify(&[JSON], br#"{"id":1,"source":"/s"}"#),
        verify(&[JSON], br#"{"id":"1","source":"/s"}"#)
    );
    check(br#"[{"id":"1","source":"/s"}]"#, unclear());
    check(b"", unclear());
    check(b"{\"id\":\"1\",\"source\":\"\xff\"}", unclear());
}
