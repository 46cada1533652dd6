//! Signatures here were computed with Python, so that they prove more than agreement with ourselves:
//!
//! ```text
//! mac = lambda secret, content: hmac.new(secret, content, hashlib.sha256)
//! standard: base64.b64encode(mac(base64.b64decode(secret), b"%s.%s.%s" % (id, timestamp, body)).digest())
//! github:   mac(secret, body).hexdigest()
//! stripe:   mac(secret, timestamp + b"." + body).hexdigest()
//! ```
//!
//! The first of Standard Webhooks and the first of GitHub are also the examples in the senders' own documentation.

mod cloud_events;
mod github;
mod standard;
mod stripe;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_core::{Key, KeyError};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{SecretError, Webhook, WebhookFault};

/// When everything here was signed.
const SIGNED_AT: u64 = 1_614_265_330;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Headers in order, with as many lines of a name as are given.
fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let lines = lines.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        (name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"))
    });
    let mut headers = HeaderMap::new();
    lines.for_each(|(name, value)| {
        headers.append(name, value);
    });
    headers
}

fn key(content: &str) -> Result<Key, WebhookFault> {
    Ok(Key::new(content).expect("a key"))
}

fn key_missing(place: &'static str) -> Result<Key, WebhookFault> {
    Err(WebhookFault::KeyMissing { place: place.into() })
}

fn key_unclear(place: &'static str) -> Result<Key, WebhookFault> {
    Err(WebhookFault::KeyUnclear { place: place.into() })
}

fn key_invalid(place: &'static str, error: KeyError) -> Result<Key, WebhookFault> {
    Err(WebhookFault::KeyInvalid { place: place.into(), error })
}

#[test]
fn p_03_secrets_that_protect_nothing_are_refused() {
    let check = |made: Result<Webhook, SecretError>, expected| {
        assert_eq!(made.expect_err("no such secrets"), expected);
    };
    let none: [&str; 0] = [];
    check(Webhook::standard(none), SecretError::None);
    check(Webhook::github(none), SecretError::None);
    check(Webhook::stripe(none), SecretError::None);
    check(Webhook::standard(["whsec_b2xk", "whsec_"]), SecretError::Empty { at: 1 });
    check(Webhook::github([""]), SecretError::Empty { at: 0 });
    check(Webhook::stripe(["whsec_x", ""]), SecretError::Empty { at: 1 });
    check(Webhook::standard(["whsec_not base64"]), SecretError::NotBase64 { at: 0 });
}

#[test]
fn p_03_secrets_are_not_shown() {
    let webhook = Webhook::github(["hunter2-canary", "older-canary"]).unwrap();
    assert_eq!(format!("{webhook:?}"), "Webhook(GitHub(2 secrets))");
    let error = Webhook::standard(["canary!"]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"));
}

#[test]
fn p_03_an_unsigned_sender_is_known_by_one_header() {
    let webhook = Webhook::unsigned(HeaderName::from_static("i-twilio-idempotency-token"));
    let check = |lines: &[(&str, &str)], expected| {
        assert_eq!(webhook.verify(&headers(lines), b"", at(0)), expected);
    };
    let name = "i-twilio-idempotency-token";
    check(&[(name, "7d3e")], key("7d3e"));
    check(&[], key_missing(name));
    check(&[(name, "7d3e"), (name, "7d3e")], key_unclear(name));
    check(&[(name, "")], key_invalid(name, KeyError::Empty));
    check(&[(name, "caf\u{e9}")], key_invalid(name, KeyError::Character { at: 3 }));
}

#[test]
fn p_03_each_fault_has_a_code_and_shows_no_content() {
    let check = |fault: WebhookFault, code: &str, detail: &str| {
        assert_eq!(fault.code().name(), code);
        assert!(fault.detail().starts_with(detail), "{}", fault.detail());
    };
    let field = "webhook-signature";
    let code = "signature-invalid";
    check(WebhookFault::SignatureMissing { field }, code, "`webhook-signature` is missing");
    check(WebhookFault::SignatureRepeated { field }, code, "`webhook-signature` is there more than once");
    check(WebhookFault::SignatureUnreadable { field }, code, "`webhook-signature` does not hold");
    check(WebhookFault::SignatureWrong, code, "no signature fits the body");
    check(WebhookFault::SignatureStale { field }, code, "the time in `webhook-signature` is more than five");
    let place = || "id".into();
    check(WebhookFault::KeyMissing { place: place() }, "key-missing", "`id` is missing");
    check(WebhookFault::KeyUnclear { place: place() }, "key-invalid", "`id` does not name one event");
    let error = KeyError::Empty;
    check(
        WebhookFault::KeyInvalid { place: place(), error },
        "key-invalid",
        "`id` cannot be a key: the key is",
    );
}
