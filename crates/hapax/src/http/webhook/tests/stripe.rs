use std::borrow::Cow;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::*;

const SECRET: &str = "whsec_stripe_endpoint";
const BODY: &[u8] = br#"{"id":"evt_1","object":"event","data":{"object":{"id":"ch_1"}}}"#;
const SIGNATURE: &str = "8cb31c0fdcd2ad3c34979c89890b00718b1a0bf2b0f70e6ec6d5b34fab093167";
/// With the secret `whsec_old`.
const OLD_SIGNATURE: &str = "89a3b7791d819068af589fcec30f802e95d596d9f2f9dfe6da904a9570e0bb56";
const FIELD: &str = "stripe-signature";

const WRONG: Result<Key, WebhookFault> = Err(WebhookFault::SignatureWrong);
const UNREADABLE: Result<Key, WebhookFault> =
    Err(WebhookFault::SignatureUnreadable { field: Cow::Borrowed(FIELD) });

fn verify(secrets: &[&str], header: &str, body: &[u8], now: u64) -> Result<Key, WebhookFault> {
    verify_by(&Webhook::stripe(secrets).unwrap(), &[(FIELD, header)], body, at(now))
}

/// The signature header that Stripe would send with this body.
fn signed(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(b"1614265330.");
    mac.update(body);
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t=1614265330,v1={digits}")
}

#[test]
fn p_03_stripe_events_are_identified_by_the_id_in_the_signed_body() {
    let check = |header: &str, expected| {
        assert_eq!(verify(&[SECRET], header, BODY, SIGNED_AT), expected, "{header}");
    };
    check(&format!("t=1614265330,v1={SIGNATURE}"), key("evt_1"));
    check(&format!("t=1614265330,v1={SIGNATURE},v0={OLD_SIGNATURE}"), key("evt_1"));
    check(&format!("t=1614265330,v1={OLD_SIGNATURE},v1={SIGNATURE}"), key("evt_1"));
    check(&format!("v1={},t=1614265330", SIGNATURE.to_uppercase()), key("evt_1"));
    check(&format!("t=1614265330,v1={OLD_SIGNATURE}"), WRONG);
    check(&format!("t=1614265331,v1={SIGNATURE}"), WRONG);
    check(&format!("t=1614265330,v0={SIGNATURE}"), UNREADABLE);
    check(&format!("v1={SIGNATURE}"), UNREADABLE);
    check(&format!("t=,v1={SIGNATURE}"), UNREADABLE);
    check(&format!("t=-1,v1={SIGNATURE}"), UNREADABLE);
    check(&format!("t=1614265330,t=1614265330,v1={SIGNATURE}"), UNREADABLE);
    check("t=1614265330", UNREADABLE);
    check("", UNREADABLE);
    check(",=,==", UNREADABLE);
    let header = format!("t=1614265330,v1={SIGNATURE}");
    assert_eq!(verify(&[SECRET], &header, br#"{"id":"evt_2"}"#, SIGNED_AT), WRONG);
}

#[test]
fn p_03_stripe_secrets_can_be_rotated() {
    for signature in [SIGNATURE, OLD_SIGNATURE] {
        let header = format!("t=1614265330,v1={signature}");
        assert_eq!(verify(&["whsec_old", SECRET], &header, BODY, SIGNED_AT), key("evt_1"), "{signature}");
    }
}

#[test]
fn p_03_stripe_signatures_are_valid_within_five_minutes() {
    let header = format!("t=1614265330,v1={SIGNATURE}");
    let stale = Err(WebhookFault::SignatureStale { field: FIELD.into() });
    let check = |now, expected| assert_eq!(verify(&[SECRET], &header, BODY, now), expected, "{now}");
    check(SIGNED_AT + 300, key("evt_1"));
    check(SIGNED_AT + 301, stale.clone());
    check(SIGNED_AT - 300, key("evt_1"));
    check(SIGNED_AT - 301, stale);
}

#[test]
fn p_03_a_repeated_stripe_header_is_refused() {
    let webhook = Webhook::stripe([SECRET]).unwrap();
    let header = format!("t=1614265330,v1={SIGNATURE}");
    let check = |lines: &[(&str, &str)], expected| {
        assert_eq!(verify_by(&webhook, lines, BODY, at(SIGNED_AT)), expected);
    };
    check(&[], Err(WebhookFault::SignatureMissing { field: FIELD.into() }));
    check(
        &[(FIELD, &header), (FIELD, &header)],
        Err(WebhookFault::SignatureRepeated { field: FIELD.into() }),
    );
}

#[test]
fn p_03_the_stripe_id_is_read_only_if_it_is_unambiguous() {
    let check = |body: &[u8], expected| {
        assert_eq!(verify(&[SECRET], &signed(body), body, SIGNED_AT), expected, "{}", body.escape_ascii());
        let forged = format!("t=1614265330,v1={OLD_SIGNATURE}");
        assert_eq!(verify(&[SECRET], &forged, body, SIGNED_AT), WRONG, "the signature is checked first");
    };
    check(br#" { "object": "event", "\u0069d": "evt_\u0031" } "#, key("evt_1"));
    check(br#"{"data":{"id":"ch_1"},"id":"evt_1"}"#, key("evt_1"));
    check(br#"{"data":{"id":"ch_1"}}"#, key_missing("/id"));
    check(br#"{"id":"evt_1","id":"evt_1"}"#, key_unclear("/id"));
    check(br#"{"\u0069d":"evt_1","id":"evt_2"}"#, key_unclear("/id"));
    check(br#"{"id":7}"#, key("7"));
    check(br#"{"id":7.5}"#, key_unclear("/id"));
    check(br#"{"id":null}"#, key_unclear("/id"));
    check(br#"["evt_1"]"#, key_unclear("/id"));
    check(br#""evt_1""#, key_unclear("/id"));
    check(br#"{"id":"evt_1"} {}"#, key_unclear("/id"));
    check(br#"{"id":"evt_1""#, key_unclear("/id"));
    check(b"", key_unclear("/id"));
    check(b"id=evt_1", key_unclear("/id"));
    check(b"{\"id\":\"evt_1\",\"note\":\"\xff\"}", key_unclear("/id"));
    check(br#"{"id":""}"#, key_invalid("/id", KeyError::Empty));
    check("{\"id\":\"caf\u{e9}\"}".as_bytes(), key_invalid("/id", KeyError::Character { at: 3 }));
}

#[test]
fn p_03_a_deep_stripe_body_is_skipped_without_recursion() {
    let deep = 1_000_000;
    let body = format!(r#"{{"data":{}{},"id":"evt_1"}}"#, "[".repeat(deep), "]".repeat(deep));
    assert_eq!(verify(&[SECRET], &signed(body.as_bytes()), body.as_bytes(), SIGNED_AT), key("evt_1"));
}
