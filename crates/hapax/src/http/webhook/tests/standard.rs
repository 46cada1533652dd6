use super::*;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD_SECRET: &str = "whsec_b2xkLXNlY3JldC1vZi10aGUtcmVjZWl2ZXI=";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIMESTAMP: &str = "1614265330";
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const OLD_SIGNATURE: &str = "v1,OJg5gCJAZFY8H2WeBLEBvvtnEuxUqFpOYkt4G1MQzTg=";

const WRONG: Result<Key, WebhookFault> = Err(WebhookFault::SignatureWrong);

fn unreadable(field: &'static str) -> Result<Key, WebhookFault> {
    Err(WebhookFault::SignatureUnreadable { field: field.into() })
}

fn verify(id: &str, timestamp: &str, signature: &str, body: &[u8]) -> Result<Key, WebhookFault> {
    let lines = [("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", signature)];
    verify_by(&Webhook::standard([SECRET]).unwrap(), &lines, body, at(SIGNED_AT))
}

#[test]
fn p_03_standard_webhooks_are_identified_by_their_signed_id() {
    assert_eq!(verify(ID, TIMESTAMP, SIGNATURE, BODY), key(ID));
    assert_eq!(verify(ID, TIMESTAMP, SIGNATURE, br#"{"test": 2432232315}"#), WRONG, "another body");
    assert_eq!(verify("msg_2", TIMESTAMP, SIGNATURE, BODY), WRONG, "another id");
    assert_eq!(verify(ID, "1614265331", SIGNATURE, BODY), WRONG, "another time");
}

#[test]
fn p_03_any_of_several_standard_signatures_is_accepted() {
    let field = "webhook-signature";
    let check = |signatures: &str, expected| {
        assert_eq!(verify(ID, TIMESTAMP, signatures, BODY), expected, "{signatures}");
    };
    check(&format!("{OLD_SIGNATURE} {SIGNATURE}"), key(ID));
    check(&format!("{SIGNATURE} {OLD_SIGNATURE}"), key(ID));
    check(&format!("v1a,bm90IG91cnM= v1,short {SIGNATURE}"), key(ID));
    check(SIGNATURE.trim_end_matches('='), key(ID));
    check(OLD_SIGNATURE, WRONG);
    check("", unreadable(field));
    check(&SIGNATURE.replace("v1,", "v1a,"), unreadable(field));
    check(&SIGNATURE.replace("v1,", "v2,"), unreadable(field));
    check(&SIGNATURE.replace("v1,", ""), unreadable(field));
    check(&SIGNATURE[..SIGNATURE.len() - 4], unreadable(field));
    check(&format!("{SIGNATURE}AAAA"), unreadable(field));
    check("v1,caf\u{e9}", unreadable(field));
}

#[test]
fn p_03_standard_secrets_can_be_rotated() {
    let check = |secrets: &[&str], signature: &str, expected| {
        let lines = [("webhook-id", ID), ("webhook-timestamp", TIMESTAMP), ("webhook-signature", signature)];
        let webhook = Webhook::standard(secrets).unwrap();
        assert_eq!(verify_by(&webhook, &lines, BODY, at(SIGNED_AT)), expected, "{signature}");
    };
    check(&[SECRET, OLD_SECRET], SIGNATURE, key(ID));
    check(&[SECRET, OLD_SECRET], OLD_SIGNATURE, key(ID));
    check(&[OLD_SECRET], SIGNATURE, WRONG);
    check(&[SECRET.trim_start_matches("whsec_")], SIGNATURE, key(ID));
    check(&[OLD_SECRET.trim_end_matches('=')], OLD_SIGNATURE, key(ID));
}

#[test]
fn p_03_standard_signatures_are_valid_within_five_minutes() {
    let lines = [("webhook-id", ID), ("webhook-timestamp", TIMESTAMP), ("webhook-signature", SIGNATURE)];
    let webhook = Webhook::standard([SECRET]).unwrap();
    let stale = Err(WebhookFault::SignatureStale { field: "webhook-timestamp".into() });
    let check = |now, expected| assert_eq!(verify_by(&webhook, &lines, BODY, now), expected, "{now:?}");
    check(at(SIGNED_AT + 300), key(ID));
    check(at(SIGNED_AT + 301), stale.clone());
    check(at(SIGNED_AT - 300), key(ID));
    check(at(SIGNED_AT - 301), stale.clone());
    check(UNIX_EPOCH - Duration::from_secs(1), stale);
}

#[test]
fn p_03_a_standard_time_is_digits() {
    // Both signatures are valid for their content.
    let field = "webhook-timestamp";
    let too_large = "v1,Y8EYKvqreWPzrz+28sw4+VlNjZt49JVCG7Qfo2CIwqY=";
    assert_eq!(verify(ID, "99999999999999999999", too_large, BODY), unreadable(field));
    let signed = "v1,JQsSpSSK1m9NI2FueDRZN3FL/jU9336idQcq6VmF+c8=";
    assert_eq!(verify(ID, "+1614265330", signed, BODY), unreadable(field));
    assert_eq!(verify(ID, "", SIGNATURE, BODY), unreadable(field));
}

#[test]
fn p_03_repeated_standard_headers_are_refused() {
    let webhook = Webhook::standard([SECRET]).unwrap();
    let lines = [("webhook-signature", SIGNATURE), ("webhook-timestamp", TIMESTAMP), ("webhook-id", ID)];
    let check = |left_out: usize, twice: usize, expected| {
        let mut some = lines.to_vec();
        some.remove(left_out);
        let missing = verify_by(&webhook, &some, BODY, at(SIGNED_AT));
        let mut more = lines.to_vec();
        more.push(lines[twice]);
        let repeated = verify_by(&webhook, &more, BODY, at(SIGNED_AT));
        assert_eq!((missing, repeated), expected);
    };
    let signature = |field: &'static str| {
        (
            Err(WebhookFault::SignatureMissing { field: field.into() }),
            Err(WebhookFault::SignatureRepeated { field: field.into() }),
        )
    };
    check(0, 0, signature("webhook-signature"));
    check(1, 1, signature("webhook-timestamp"));
    check(2, 2, (key_missing("webhook-id"), key_unclear("webhook-id")));
}

#[test]
fn p_03_a_standard_id_must_be_a_key() {
    let check = |id: &str, signature: &str, expected| {
        assert_eq!(verify(id, TIMESTAMP, signature, BODY), expected, "{id}");
        assert_eq!(verify(id, TIMESTAMP, SIGNATURE, BODY), WRONG, "the signature is checked first");
    };
    let too_long = KeyError::TooLong { length: 256, length_max: 255 };
    check(
        &"m".repeat(256),
        "v1,o2wGSMHD3FdF1DoxrWwkXeO5Q3Mo62i657L/Y+hzkV4=",
        key_invalid("webhook-id", too_long),
    );
    check(
        "caf\u{e9}",
        "v1,4kTi1jo8cl7tWB20GmGPHL8odVEBdNThJsXOa6YSA/A=",
        key_invalid("webhook-id", KeyError::Character { at: 3 }),
    );
}

#[test]
fn p_03_no_other_standard_event_can_be_forged_from_one() {
    // One signature with two interpretations: `a` at 1614265330 with a body that begins like a time, and one that is
    // refused.
    let signature = "v1,U4WbUFCv+6hwK+tWmsklWN9ZxFEwdGveXAhJWwg0o18=";
    assert_eq!(verify("a", "1614265330", signature, b"1614265331.5"), key("a"));
    assert_eq!(verify("a.1614265330", "1614265331", signature, b"5"), key_unclear("webhook-id"));
}
