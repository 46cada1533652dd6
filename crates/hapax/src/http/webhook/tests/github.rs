use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::*;

const SECRET: &str = "It's a Secret to Everybody";
const BODY: &[u8] = b"Hello, World!";
const SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
/// With the secret `another secret`.
const OTHER_SIGNATURE: &str = "sha256=53749069b1b9c62fdd8c727a283be703d0350383d9cc75ba8f887aff9a448f40";
const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
const FIELD: &str = "x-hub-signature-256";

fn verify(lines: &[(&str, &str)], body: &[u8]) -> Result<Key, WebhookFault> {
    // GitHub signs no time, so any time is valid.
    verify_by(&Webhook::github([SECRET]).unwrap(), lines, body, at(0))
}

fn check(lines: &[(&str, &str)], body: &[u8], expected: Result<Key, WebhookFault>) {
    assert_eq!(verify(lines, body), expected, "{lines:?}");
}

#[test]
fn p_03_github_events_are_identified_by_the_signed_content() {
    let of = |id, signature, body| verify(&[("X-GitHub-Delivery", id), (FIELD, signature)], body);
    let key = of(ID, SIGNATURE, BODY);
    assert!(is_digest(&key), "{key:?}");
    assert_eq!(of("another", SIGNATURE, BODY), key, "the id is not signed");
    assert_eq!(
        verify(&[(FIELD, SIGNATURE), ("X-GitHub-Event", "ping")], BODY),
        key,
        "other headers do not count"
    );
    let other = "sha256=0bbcf9de1d71e4d5e8a2fabd9ea4d0c1c8be0d3d04d5dfb3f4cbaabd1d3e3c3e";
    assert_eq!(of(ID, other, b"Hello, Moon!"), Err(WebhookFault::SignatureWrong));
    assert_ne!(of(ID, &signed(b"Hello, Moon!"), b"Hello, Moon!"), key, "another event with the same id");
}

fn signed(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body);
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

#[test]
fn p_03_a_github_signature_is_read_as_it_is_written() {
    let wrong = || Err(WebhookFault::SignatureWrong);
    let unreadable = || Err(WebhookFault::SignatureUnreadable { field: FIELD.into() });
    let upper = SIGNATURE.to_uppercase().replace("SHA", "sha");
    assert!(is_digest(&verify(&[(FIELD, &upper)], BODY)));
    check(&[(FIELD, SIGNATURE)], b"Hello, World?", wrong());
    check(&[(FIELD, SIGNATURE)], b"", wrong());
    check(&[(FIELD, OTHER_SIGNATURE)], BODY, wrong());
    check(&[(FIELD, &SIGNATURE[7..])], BODY, unreadable());
    check(&[(FIELD, &SIGNATURE.replace("256", "1"))], BODY, unreadable());
    check(&[(FIELD, &SIGNATURE[..SIGNATURE.len() - 1])], BODY, unreadable());
    check(&[(FIELD, &SIGNATURE[..SIGNATURE.len() - 2])], BODY, unreadable());
    check(&[(FIELD, &SIGNATURE.replace("17", "1g"))], BODY, unreadable());
    check(&[(FIELD, "sha256=")], BODY, unreadable());
}

#[test]
fn p_03_a_repeated_github_signature_is_refused() {
    let signature = (FIELD, SIGNATURE);
    let missing = || Err(WebhookFault::SignatureMissing { field: FIELD.into() });
    check(&[("x-github-delivery", ID)], BODY, missing());
    check(&[signature, signature], BODY, Err(WebhookFault::SignatureRepeated { field: FIELD.into() }));
    // The older SHA-1 signature alone is not accepted.
    check(&[("x-hub-signature", "sha1=00")], BODY, missing());
}

#[test]
fn p_03_github_secrets_can_be_rotated() {
    let webhook = Webhook::github(["another secret", SECRET]).unwrap();
    for signature in [SIGNATURE, OTHER_SIGNATURE] {
        assert!(is_digest(&verify_by(&webhook, &[(FIELD, signature)], BODY, at(0))), "{signature}");
    }
}
