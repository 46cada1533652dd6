use super::*;

fn sign(scheme: &str, secret: &str) -> Sign {
    toml::from_str(&format!("scheme = \"{scheme}\"\nsecret = \"{secret}\"\nid = \"1\"")).expect("a signature")
}

#[test]
fn p_03_a_published_signature_is_reproduced() {
    // The example of GitHub's documentation.
    let lines = lines(&sign("github", "It's a Secret to Everybody"), b"Hello, World!").expect("signed");
    let expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    assert!(lines.contains(&("X-Hub-Signature-256".to_owned(), expected.to_owned())), "{lines:?}");
}

#[test]
fn p_03_the_message_is_part_of_each_signature() {
    for (scheme, field) in [
        ("standard", "webhook-signature"),
        ("github", "X-Hub-Signature-256"),
        ("stripe", "Stripe-Signature"),
        ("shopify", "X-Shopify-Hmac-Sha256"),
        ("slack", "X-Slack-Signature"),
    ] {
        let signature = |content: &[u8]| {
            let lines = lines(&sign(scheme, "whsec_AAAA"), content).expect("signed");
            lines.into_iter().find(|(name, _)| name == field).expect("a signature").1
        };
        // The text before `v1` may hold the time, which differs.
        let digest = |content| signature(content).rsplit("v1").next().map(str::to_owned);
        assert_ne!(digest(b"one"), digest(b"two"), "{scheme}");
    }
}

#[test]
fn an_invalid_secret_is_an_error() {
    assert!(lines(&sign("standard", "whsec_!"), b"").is_err());
}
