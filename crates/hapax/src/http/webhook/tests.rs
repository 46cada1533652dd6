//! The signatures were computed with Python, independently of this implementation:
//!
//! ```text
//! mac = lambda secret, content: hmac.new(secret, content, hashlib.sha256)
//! standard: base64.b64encode(mac(base64.b64decode(secret), b"%s.%s.%s" % (id, timestamp, body)).digest())
//! github:   mac(secret, body).hexdigest()
//! stripe:   mac(secret, timestamp + b"." + body).hexdigest()
//! ```
//!
//! The first of Standard Webhooks and the first of GitHub are also the examples in the senders' documentation.

mod cloud_events;
mod described;
mod github;
mod senders;
mod standard;
mod stripe;

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_core::{Key, KeyError};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Delivery, Webhook, WebhookError, WebhookFault};
use crate::http::settings::{WebhookScheme, WebhookSecretEncoding};

/// The time of signing in these tests.
const SIGNED_AT: u64 = 1_614_265_330;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Headers in order; a name may have several lines.
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

/// The key of a request to `/hooks`.
fn verify_by(
    webhook: &Webhook,
    lines: &[(&str, &str)],
    body: &[u8],
    now: SystemTime,
) -> Result<Key, WebhookFault> {
    webhook.verify(Delivery { target: "/hooks", headers: &headers(lines), body }, now)
}

fn key(content: &str) -> Result<Key, WebhookFault> {
    Ok(Key::new(content).expect("a key"))
}

/// Whether the key is a digest.
fn is_digest(key: &Result<Key, WebhookFault>) -> bool {
    key.as_ref().is_ok_and(|key| {
        key.as_str().len() == 64 && key.as_str().bytes().all(|byte| byte.is_ascii_hexdigit())
    })
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
fn p_03_missing_empty_or_malformed_secrets_are_refused() {
    let check = |made: Result<Webhook, WebhookError>, expected| {
        assert_eq!(made.expect_err("no such secrets"), expected);
    };
    let none: [&str; 0] = [];
    check(Webhook::standard(none), WebhookError::None);
    check(Webhook::github(none), WebhookError::None);
    check(Webhook::stripe(none), WebhookError::None);
    check(Webhook::standard(["whsec_b2xk", "whsec_"]), WebhookError::Empty { at: 1 });
    check(Webhook::github([""]), WebhookError::Empty { at: 0 });
    check(Webhook::stripe(["whsec_x", ""]), WebhookError::Empty { at: 1 });
    check(
        Webhook::standard(["whsec_not base64"]),
        WebhookError::Unreadable { at: 0, encoding: WebhookSecretEncoding::Base64 },
    );
}

#[test]
fn p_03_secrets_are_not_shown() {
    let webhook = Webhook::github(["hunter2-canary", "older-canary"]).unwrap();
    assert_eq!(format!("{webhook:?}"), "Webhook(github, 2 secrets)");
    let error = Webhook::standard(["canary!"]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"));
}

#[test]
fn p_03_events_of_an_unsigned_sender_are_identified_by_one_header() {
    let webhook = Webhook::unsigned(HeaderName::from_static("i-twilio-idempotency-token"));
    let check = |lines: &[(&str, &str)], expected| {
        assert_eq!(verify_by(&webhook, lines, b"", at(0)), expected);
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
    let field = || Cow::Borrowed("webhook-signature");
    let code = "signature-invalid";
    check(WebhookFault::SignatureMissing { field: field() }, code, "`webhook-signature` is missing");
    check(WebhookFault::SignatureRepeated { field: field() }, code, "`webhook-signature` is repeated");
    check(
        WebhookFault::SignatureUnreadable { field: field() },
        code,
        "`webhook-signature` has no valid signature",
    );
    check(WebhookFault::SignatureWrong, code, "no signature matches the body");
    check(
        WebhookFault::SignatureStale { field: field() },
        code,
        "the time in `webhook-signature` is too far",
    );
    let place = || "id".into();
    check(WebhookFault::KeyMissing { place: place() }, "key-missing", "`id` is missing");
    check(WebhookFault::KeyUnclear { place: place() }, "key-invalid", "`id` is ambiguous");
    let error = KeyError::Empty;
    check(
        WebhookFault::KeyInvalid { place: place(), error },
        "key-invalid",
        "`id` cannot be a key: the key is",
    );
}
