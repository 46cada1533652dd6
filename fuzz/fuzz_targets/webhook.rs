//! Webhooks: no signature verifies without the secret, and every event key is valid.

#![no_main]

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax::http::{Webhook, fuzzing};
use libfuzzer_sys::fuzz_target;

static SIGNED: LazyLock<[Webhook; 6]> = LazyLock::new(|| {
    [
        Webhook::standard(["whsec_c2VjcmV0LXRoYXQtbm9ib2R5LWtub3dz"]).expect("Base64 after its prefix"),
        Webhook::github(["secret"]).expect("one secret"),
        Webhook::stripe(["secret"]).expect("one secret"),
        Webhook::slack(["secret"]).expect("one secret"),
        Webhook::twilio(["secret"], "https://hooks.example.com").expect("one secret"),
        Webhook::linear(["secret"]).expect("one secret"),
    ]
});

fuzz_target!(|input: &[u8]| {
    let Some((parts, body)) = hapax_fuzz::request(input) else { return };
    let now: SystemTime = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for webhook in &*SIGNED {
        let fault = fuzzing::webhook(webhook, &parts.headers, &body, now);
        assert!(fault.expect_err("the signature must not verify").len() < 500);
    }
    let _ = fuzzing::webhook(&Webhook::cloud_events(), &parts.headers, &body, now);
    let unsigned = Webhook::unsigned(http::HeaderName::from_static("ce-id"));
    if let Ok(key) = fuzzing::webhook(&unsigned, &parts.headers, &body, now) {
        assert!(!key.as_str().is_empty());
    }
});
