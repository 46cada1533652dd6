//! Signatures were made with the senders' own libraries if those can sign (`twilio`, `slack_sdk` and `svix` from PyPI),
//! those of Shopify and Linear with Python's `hmac`; `@linear/sdk` accepts its signature. The Slack command is the
//! example of Slack's documentation.

use super::*;

const STALE: fn(&'static str) -> Result<Key, WebhookFault> =
    |field| Err(WebhookFault::SignatureStale { field: Cow::Borrowed(field) });
const WRONG: Result<Key, WebhookFault> = Err(WebhookFault::SignatureWrong);

#[test]
fn p_03_svix_has_its_own_header_names() {
    let webhook = Webhook::svix(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]).unwrap();
    let lines = [
        ("svix-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("svix-timestamp", "1614265330"),
        ("svix-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ];
    let body = br#"{"test": 2432232314}"#;
    assert_eq!(verify_by(&webhook, &lines, body, at(SIGNED_AT)), key("msg_p5jXN8AQM9LWM0D4loKWxJek"));
    assert_eq!(verify_by(&webhook, &lines, b"{}", at(SIGNED_AT)), WRONG);
}

#[test]
fn p_03_shopify_events_are_identified_by_topic_and_body() {
    let webhook = Webhook::shopify(["hush"]).unwrap();
    let body = br#"{"id":820982911946154508,"total_price":"254.98"}"#;
    let of = |topic, id, body: &[u8]| {
        let signature = ("x-shopify-hmac-sha256", "JLKqbncr25qY08snlAzG1Nm0Skvqyi9XYibZNBfIg80=");
        let lines = [signature, ("x-shopify-topic", topic), ("x-shopify-webhook-id", id)];
        verify_by(&webhook, &lines, body, at(0))
    };
    let created = of("orders/create", "1", body);
    assert!(is_digest(&created), "{created:?}");
    assert_eq!(of("orders/create", "2", body), created, "the id is not signed");
    assert_eq!(of("Orders/Create", "2", body), created);
    assert_ne!(of("orders/paid", "1", body), created, "two events may have the same body");
    assert_eq!(of("orders/create", "1", b"{}"), WRONG);
    let lines = [("x-shopify-hmac-sha256", "JLKqbncr25qY08snlAzG1Nm0Skvqyi9XYibZNBfIg80=")];
    assert_eq!(verify_by(&webhook, &lines, body, at(0)), key_missing("x-shopify-topic"));
}

#[test]
fn p_03_slack_events_are_identified_by_the_id_in_the_body() {
    let webhook = Webhook::slack(["8f742231b10e8888abcd99yyyzzz85a5"]).unwrap();
    let of = |time: &str, signature, body: &[u8], now| {
        let lines = [("x-slack-request-timestamp", time), ("x-slack-signature", signature)];
        verify_by(&webhook, &lines, body, at(now))
    };
    let event = br#"{"type":"event_callback","event_id":"Ev123ABC456"}"#;
    let signature = "v0=c9d13da9a2643bfdf0a0885927b67380f02274cdebc17b381bd95c0f70dd55a2";
    assert_eq!(of("1614265330", signature, event, SIGNED_AT), key("Ev123ABC456"));
    assert_eq!(of("1614265330", signature, event, SIGNED_AT + 301), STALE("x-slack-request-timestamp"));
    assert_eq!(of("1614265331", signature, event, SIGNED_AT), WRONG);
    let again = "v0=f04cda03cd3782a1d986fc401d246eaaee97edf749bfae497943e74de3ecda2b";
    assert_eq!(of("1614265390", again, event, SIGNED_AT + 60), key("Ev123ABC456"));
}

#[test]
fn p_03_slack_requests_without_an_id_are_identified_by_content() {
    let webhook = Webhook::slack(["8f742231b10e8888abcd99yyyzzz85a5"]).unwrap();
    let of = |time: &str, signature, body: &[u8]| {
        let lines = [("x-slack-request-timestamp", time), ("x-slack-signature", signature)];
        verify_by(&webhook, &lines, body, at(time.parse().unwrap()))
    };
    let check = of(
        "1614265330",
        "v0=ff40afe6e745f05170e9ede59f452e01d2d71e5b53e34654f72ca3ff1a201e39",
        br#"{"type":"url_verification","challenge":"3eZbrw1a"}"#,
    );
    assert!(is_digest(&check), "{check:?}");
    let command = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
                   channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                   response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F\
                   96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let command = of("1531420618", signature, command.as_bytes());
    assert!(is_digest(&command) && command != check, "{command:?}");
}

/// The key of a request to a Twilio receiver at `https://hooks.example.com`.
fn twilio(target: &str, content_type: &str, signature: &str, body: &[u8]) -> Result<Key, WebhookFault> {
    let lines = [("x-twilio-signature", signature), ("content-type", content_type)];
    let delivery = Delivery { target, headers: &headers(&lines), body };
    Webhook::twilio(["12345"], "https://hooks.example.com/").unwrap().verify(delivery, at(0))
}

const FORM: &str = "application/x-www-form-urlencoded; charset=UTF-8";

#[test]
fn p_03_twilio_events_are_identified_by_the_url_and_the_form() {
    let body =
        b"CallSid=CA1234567890ABCDE&Caller=%2B12349013030&Digits=1234&From=%2B12349013030&To=%2B18005551212";
    let signature = "KIc4hmH8CiRPZksmWtZ+q4BhJO0=";
    let target = "/hooks/sms?foo=1&bar=2";
    let event = twilio(target, FORM, signature, body);
    assert!(is_digest(&event), "{event:?}");
    // The order of fields is not signed.
    let turned =
        b"To=%2B18005551212&CallSid=CA1234567890ABCDE&Caller=%2B12349013030&From=%2B12349013030&Digits=1234";
    assert_eq!(twilio(target, FORM, signature, turned), event);
    // Neither is the boundary between the URL and the form.
    let digits =
        format!("{target}CallSidCA1234567890ABCDECaller+12349013030Digits1234From+12349013030To+18005551212");
    assert_eq!(twilio(&digits, FORM, signature, b""), event);
    assert_eq!(twilio("/hooks/sms?foo=1&bar=3", FORM, signature, body), WRONG);
    assert_eq!(twilio(target, FORM, signature, &body[..body.len() - 1]), WRONG);
    assert_eq!(twilio(target, "text/plain", signature, body), WRONG);
    // Each value counts once, and an empty one counts.
    let many = "IAVyW2AxYIUhAxvUUFM6cqHec+Y=";
    assert!(is_digest(&twilio("/hooks", FORM, many, b"B=2&B=1&A=&B=2")));
}

#[test]
fn p_03_other_twilio_bodies_are_identified_by_the_digest_in_the_url() {
    let target = "/hooks/json?bodySHA256=b4fd85f2ce8bfebc5cbc4a67ac690906953178daf04df41e183024cc01315de4";
    let of = |body: &[u8]| twilio(target, "application/json", "p9f2yIbBoN8WVqrnKaB/pxHyKZU=", body);
    assert!(is_digest(&of(br#"{"MessageSid":"SM1"}"#)));
    assert_eq!(of(br#"{"MessageSid":"SM2"}"#), WRONG);
}

#[test]
fn p_03_linear_events_are_identified_without_the_time_of_the_attempt() {
    let webhook = Webhook::linear(["lin_wh_secret"]).unwrap();
    let of = |time: u64, title: &str, signature, now| {
        let body = format!(
            r#"{{"action":"update","type":"Issue","createdAt":"2021-02-25T15:02:09.000Z","data":{{"id":"2174add1","title":"{title}"}},"webhookTimestamp":{time},"webhookId":"000042e3"}}"#
        );
        let lines = [("linear-signature", signature), ("linear-delivery", "1")];
        verify_by(&webhook, &lines, body.as_bytes(), at(now))
    };
    let first = "0056bd5493e6468e572690eb6940539ae9346fa21b5d84809082150ec07dff02";
    let event = of(SIGNED_AT * 1000, "Renamed", first, SIGNED_AT + 60);
    assert!(is_digest(&event), "{event:?}");
    assert_eq!(of(SIGNED_AT * 1000, "Renamed", first, SIGNED_AT + 61), STALE("/webhookTimestamp"));
    assert_eq!(of(SIGNED_AT * 1000, "Other", first, SIGNED_AT), WRONG);
    let again = "279bdb922acbc84b574e6af976ba98e0e5c41fc0bbf09acaf929eac178183119";
    assert_eq!(of(SIGNED_AT * 1000 + 60_000, "Renamed", again, SIGNED_AT), event);
    let other = "9f12c73a0c92a425c342fea806a15d145c707751f6b489f7973c078da7162713";
    let other = of(SIGNED_AT * 1000, "Other", other, SIGNED_AT);
    assert!(is_digest(&other) && other != event, "{other:?}");
}
