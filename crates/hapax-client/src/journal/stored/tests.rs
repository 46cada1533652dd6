use super::*;

/// A stored call with a key and a body.
pub(in crate::journal) fn stored(key: &str, body: &[u8]) -> StoredCall {
    StoredCall::of(&plan(key, body)).unwrap()
}

pub(in crate::journal) fn plan(key: &str, body: &[u8]) -> Plan {
    let url = "https://user:secret@shop.example/orders?dry=1";
    let request = reqwest::Client::new().post(url).header("cookie", "sid=1").header("x-trace", "caf\u{e9}");
    let mut plan = Plan {
        settings: Settings::default(),
        head: request.build().unwrap(),
        body: BodySource::Bytes(Some(Bytes::copy_from_slice(body))),
        key: Some(Key::new(key).unwrap()),
        made_at: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        is_continued: false,
        streams_response: false,
    };
    plan.put_key();
    plan
}

#[test]
fn credentials_are_not_written() {
    let written = serde_json::to_string(&stored("k", b"").head()).unwrap();
    assert!(written.contains("https://shop.example/orders?dry=1"), "{written}");
    assert!(!written.contains("secret") && !written.contains("sid=1"), "{written}");
    assert!(!written.contains("authorization") && !written.contains("cookie"), "{written}");
}

#[test]
fn c_01_a_stored_call_is_the_same_request_again() {
    let before = plan("ord\"er", b"{}");
    let head: StoredHead =
        serde_json::from_str(&serde_json::to_string(&stored("ord\"er", b"{}").head()).unwrap()).unwrap();
    let again = StoredCall::read(head, Bytes::from_static(b"{}")).unwrap();
    let again = again.plan(&reqwest::Client::new(), &Settings::default()).unwrap();

    assert_eq!(again.made_at, before.made_at);
    assert_eq!(again.head.headers()["idempotency-key"], "\"ord\\\"er\"");
    assert_eq!(again.head.headers()["x-trace"], before.head.headers()["x-trace"]);
    assert_eq!(again.head.method(), before.head.method());
    assert!(matches!(again.body, BodySource::Bytes(Some(body)) if body == "{}"));
}

#[test]
fn c_04_a_clock_that_was_set_back_does_not_prolong_the_lifetime() {
    let mut plan = plan("k", b"");
    let (made_at, hour) = (plan.made_at, Duration::from_secs(3600));
    assert_eq!(plan.lifetime_left(made_at + hour), 23 * hour);
    assert_eq!(plan.lifetime_left(made_at - Duration::from_secs(1)), 24 * hour);
    assert_eq!(plan.lifetime_left(made_at - hour), Duration::ZERO);

    let now = made_at - hour;
    plan.made_at = now;
    plan.continue_from(made_at, now);
    assert_eq!(plan.lifetime_left(now), Duration::ZERO);
    plan.continue_from(now - hour, now);
    assert_eq!(plan.lifetime_left(now), 23 * hour);
}
