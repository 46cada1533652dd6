use super::*;
use crate::age::Moment;

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
        age: KeyAge::new(UNIX_EPOCH + Duration::from_millis(1_700_000_000_123), Moment::now()),
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
    assert_eq!(again.key_made_at(), before.age.made_at());
    let again = again.plan(before.age, &reqwest::Client::new(), &Settings::default()).unwrap();

    assert_eq!(again.head.headers()["idempotency-key"], "\"ord\\\"er\"");
    assert_eq!(again.head.headers()["x-trace"], before.head.headers()["x-trace"]);
    assert_eq!(again.head.method(), before.head.method());
    assert!(matches!(again.body, BodySource::Bytes(Some(body)) if body == "{}"));
}

#[test]
fn c_04_the_lifetime_ends_by_the_age_of_the_key() {
    let mut plan = plan("k", b"");
    let now = Moment::now();
    let hour = Duration::from_secs(3600);
    plan.age = KeyAge::new(now.wall - hour, now);
    assert_eq!(plan.lifetime_left(now), 23 * hour);
    plan.age = KeyAge::new(now.wall + hour, now);
    assert_eq!(plan.lifetime_left(now), Duration::ZERO);
    plan.key = None;
    assert_eq!(plan.lifetime_left(now), Duration::MAX);
}
