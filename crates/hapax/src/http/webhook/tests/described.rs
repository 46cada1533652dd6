//! Senders with a custom description: which descriptions are valid.

use super::*;

fn described(json: &str) -> Result<Webhook, WebhookError> {
    let scheme: WebhookScheme = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    Webhook::signed(scheme, ["00ff10"])
}

#[test]
fn p_03_a_described_sender_is_read_as_described() {
    let webhook = described(
        r#"{ "header": "x-sig", "signed": "{body}|{time}", "time": "header:x-time", "tolerance": "10s",
             "secret_encoding": "hex", "key": ["json:/n"] }"#,
    );
    let webhook = webhook.unwrap();
    let signature = ("x-sig", "8b9d659d0076a9ee6c3189d6177a5b0f78956b885c74f150c688c5fdf1c5f448");
    let lines = [signature, ("x-time", "1614265330")];
    let of = |now| verify_by(&webhook, &lines, br#"{"n":1}"#, at(now));
    assert_eq!(of(SIGNED_AT + 10), key("1"));
    assert_eq!(of(SIGNED_AT + 11), Err(WebhookFault::SignatureStale { field: "x-time".into() }));
}

#[test]
fn p_03_a_described_sender_may_use_another_hash_function() {
    let scheme =
        r#"{ "header": "x-paystack-signature", "algorithm": "sha512", "key": ["json:/data/id", "content"] }"#;
    let webhook = Webhook::signed(serde_json::from_str(scheme).unwrap(), ["sk_test_1"]).unwrap();
    let signature = "c4e7d4dba6549a513a355983d4074e561b694989fc560f96e5ae1b7d9e62fbb283cbdba145302add6978c9168b9f6ce0586a265ab\
                     92d8117e7fd4e8136beff33";
    let body = br#"{"event":"charge.success","data":{"id":302961}}"#;
    assert_eq!(verify_by(&webhook, &[("x-paystack-signature", signature)], body, at(0)), key("302961"));
    let short = &signature[..64];
    let unreadable = WebhookFault::SignatureUnreadable { field: "x-paystack-signature".into() };
    assert_eq!(verify_by(&webhook, &[("x-paystack-signature", short)], body, at(0)), Err(unreadable));
}

#[test]
fn p_03_a_preset_may_be_changed_in_part() {
    let webhook = Webhook::signed(
        serde_json::from_str(r#"{ "preset": "stripe", "tolerance": "1h" }"#).unwrap(),
        ["whsec_stripe_endpoint"],
    );
    let header = "t=1614265330,v1=8cb31c0fdcd2ad3c34979c89890b00718b1a0bf2b0f70e6ec6d5b34fab093167";
    let body = br#"{"id":"evt_1","object":"event","data":{"object":{"id":"ch_1"}}}"#;
    let found = verify_by(&webhook.unwrap(), &[("stripe-signature", header)], body, at(SIGNED_AT + 3600));
    assert_eq!(found, key("evt_1"));
}

#[test]
fn p_03_an_unsigned_id_cannot_be_the_key() {
    let check = |json: &str, option: &str| match described(json) {
        Err(WebhookError::Scheme { option: found, .. }) => assert_eq!(found, option, "{json}"),
        other => panic!("{json}: {other:?}"),
    };
    check(r#"{ "preset": "github", "key": ["header:x-github-delivery"] }"#, "key");
    check(r#"{ "preset": "github", "key": ["content", "header:x-github-delivery"] }"#, "key");
    check(r#"{ "preset": "github", "key": ["cloudevent", "content"] }"#, "key");
    check(r#"{ "preset": "twilio", "url": "https://a.example", "key": ["json:/id"] }"#, "key");
    // A time that is not signed is not authenticated.
    check(r#"{ "header": "x-sig", "time": "header:x-time" }"#, "time");
    check(r#"{ "header": "x-sig", "time": "item:t=" }"#, "time");
}

#[test]
fn p_03_the_boundaries_of_signed_parts_must_be_unambiguous() {
    let check = |signed: &str, is_taken: bool| {
        let json = format!(
            r#"{{ "header": "x-sig", "signed": "{signed}", "time": "header:x-time", "url": "https://a.example" }}"#
        );
        assert_eq!(described(&json).is_ok(), is_taken, "{signed}");
    };
    check("{url}|{time}.{body}", true);
    check("{time}{body}|{url}", false);
    check("{url}|{time}1{body}", false);
    check("{url}|v1{time}.{body}", false);
    check("{url}{body}|{time}", false);
    check("{url}{form}|{time}", true);
    check("{url}|{header:x-id}{time}.{body}", false);
    check("{url}|{time}.{body}.{form}", false);
    check("{url}|{time}.{body}.{body}", false);
    check("{url}|{time}", false);
    check("{time}.{body}", false);
    check("{url}|{body}", false);
    check("{url}|{time}.{body}.{id}", false);
    check("{url}|{time}.{body", false);
}

#[test]
fn p_03_a_signed_id_must_not_contain_its_separator() {
    // Each signature fits two interpretations. They were computed with Python, with the secret `00ff10` as text.
    let check = |signed: &str, signature: &str, id: &str, body: &str, expected| {
        let json = format!(r#"{{ "header": "x-sig", "signed": "{signed}", "key": ["header:x-id"] }}"#);
        let found = verify_by(
            &described(&json).unwrap(),
            &[("x-id", id), ("x-sig", signature)],
            body.as_bytes(),
            at(0),
        );
        assert_eq!(found, expected, "{signed} {id}");
    };
    let before = "0c227f8181073cc2df049b358476393df1be80e3262140792800e6aee55a2440";
    check("{header:x-id}:{body}", before, "a", "b:c", key("a"));
    check("{header:x-id}:{body}", before, "a:b", "c", key_unclear("x-id"));
    let after = "c0d5d2840d2e8a448418f58ad483c0e4477a393188a62365b3199bb2b3d3e3eb";
    check("{body}|{header:x-id}", after, "a", "c|b", key("a"));
    check("{body}|{header:x-id}", after, "b|a", "c", key_unclear("x-id"));
}

#[test]
fn an_invalid_description_is_refused_with_its_option() {
    let check = |json: &str, option: &str| match described(json) {
        Err(WebhookError::Scheme { option: found, .. }) => assert_eq!(found, option, "{json}"),
        other => panic!("{json}: {other:?}"),
    };
    check("{}", "header");
    check(r#"{ "header": "a b" }"#, "header");
    check(r#"{ "preset": "cloudevents", "header": "x-sig" }"#, "header");
    check(r#"{ "header": "x-sig", "key": ["id"] }"#, "key");
    check(r#"{ "header": "x-sig", "key": ["json:id"] }"#, "key");
    check(r#"{ "header": "x-sig", "tolerance": "1m" }"#, "time");
    check(r#"{ "header": "x-sig", "signed": "{time}.{body}" }"#, "time");
    check(r#"{ "header": "x-sig", "signed": "{time}.{body}", "time": "body:t" }"#, "time");
    check(r#"{ "header": "x-sig", "content_exclude": ["id"] }"#, "content_exclude");
    check(r#"{ "header": "x-sig", "content_headers": ["a b"] }"#, "content_headers");
    check(r#"{ "preset": "twilio" }"#, "url");
    check(r#"{ "preset": "twilio", "url": "hooks.example.com" }"#, "url");
    check(r#"{ "preset": "twilio", "url": "https://hooks.example.com?a=1" }"#, "url");
    check(r#"{ "preset": "github", "url": "https://hooks.example.com" }"#, "url");
}
