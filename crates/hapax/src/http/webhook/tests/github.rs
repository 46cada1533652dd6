use super::*;

const SECRET: &str = "It's a Secret to Everybody";
const BODY: &[u8] = b"Hello, World!";
const SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
/// By the secret `another secret`.
const OTHER_SIGNATURE: &str = "sha256=53749069b1b9c62fdd8c727a283be703d0350383d9cc75ba8f887aff9a448f40";
const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
const FIELD: &str = "x-hub-signature-256";

fn check(lines: &[(&str, &str)], body: &[u8], expected: Result<Key, WebhookFault>) {
    let webhook = Webhook::github([SECRET]).unwrap();
    // GitHub signs no time, so any will do.
    assert_eq!(webhook.verify(&headers(lines), body, at(0)), expected, "{lines:?}");
}

#[test]
fn p_03_github_deliveries_are_known_by_their_id() {
    let id = ("X-GitHub-Delivery", ID);
    let wrong = || Err(WebhookFault::SignatureWrong);
    let unreadable = || Err(WebhookFault::SignatureUnreadable { field: FIELD });
    check(&[id, (FIELD, SIGNATURE)], BODY, key(ID));
    check(&[id, (FIELD, SIGNATURE)], b"Hello, World?", wrong());
    check(&[id, (FIELD, SIGNATURE)], b"", wrong());
    check(&[id, (FIELD, OTHER_SIGNATURE)], BODY, wrong());
    let upper = SIGNATURE.to_uppercase().replace("SHA", "sha");
    check(&[id, (FIELD, &upper)], BODY, key(ID));
    check(&[id, (FIELD, &SIGNATURE[7..])], BODY, unreadable());
    check(&[id, (FIELD, &SIGNATURE.replace("256", "1"))], BODY, unreadable());
    check(&[id, (FIELD, &SIGNATURE[..SIGNATURE.len() - 1])], BODY, unreadable());
    check(&[id, (FIELD, &SIGNATURE.replace("17", "1g"))], BODY, unreadable());
    check(&[id, (FIELD, "sha256=")], BODY, unreadable());
}

#[test]
fn p_03_github_headers_are_there_once() {
    let (id, signature) = (("x-github-delivery", ID), (FIELD, SIGNATURE));
    check(&[id], BODY, Err(WebhookFault::SignatureMissing { field: FIELD }));
    check(&[id, signature, signature], BODY, Err(WebhookFault::SignatureRepeated { field: FIELD }));
    check(&[signature], BODY, key_missing("x-github-delivery"));
    check(&[id, id, signature], BODY, key_unclear("x-github-delivery"));
    check(&[(FIELD, OTHER_SIGNATURE)], BODY, Err(WebhookFault::SignatureWrong));
    // The older SHA-1 signature alone is not enough.
    check(&[id, ("x-hub-signature", "sha1=00")], BODY, Err(WebhookFault::SignatureMissing { field: FIELD }));
}

#[test]
fn p_03_github_secrets_can_be_rotated() {
    let webhook = Webhook::github(["another secret", SECRET]).unwrap();
    for signature in [SIGNATURE, OTHER_SIGNATURE] {
        let lines = [("x-github-delivery", ID), (FIELD, signature)];
        assert_eq!(webhook.verify(&headers(&lines), BODY, at(0)), key(ID), "{signature}");
    }
}
