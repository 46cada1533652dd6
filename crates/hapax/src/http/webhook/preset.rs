//! The known senders, as data: each as a file could describe it.

use std::time::Duration;

use crate::http::settings::{
    Span, WebhookAlgorithm, WebhookEncoding, WebhookName, WebhookScheme, WebhookSecretEncoding,
    WebhookTimeUnit,
};

/// How a known sender signs, and what identifies its events.
///
/// GitHub, Shopify, Twilio and Linear send an id in a header that they do not sign: their key is the signed content.
pub(super) fn scheme(name: WebhookName) -> WebhookScheme {
    match name {
        WebhookName::Standard => standard("webhook"),
        WebhookName::Svix => standard("svix"),
        WebhookName::GitHub => WebhookScheme {
            header: text("x-hub-signature-256"),
            prefix: text("sha256="),
            ..WebhookScheme::default()
        },
        WebhookName::Stripe => WebhookScheme {
            header: text("stripe-signature"),
            separator: text(","),
            prefix: text("v1="),
            signed: text("{time}.{body}"),
            time: text("item:t="),
            key: texts(&["json:/id"]),
            ..WebhookScheme::default()
        },
        // Bodies of `orders/create` and `orders/paid` may be equal, and are two events.
        WebhookName::Shopify => WebhookScheme {
            header: text("x-shopify-hmac-sha256"),
            encoding: Some(WebhookEncoding::Base64),
            content_headers: texts(&["x-shopify-topic"]),
            ..WebhookScheme::default()
        },
        // Commands, interactions and URL verification have no `event_id`. Only events are redelivered.
        WebhookName::Slack => WebhookScheme {
            header: text("x-slack-signature"),
            prefix: text("v0="),
            signed: text("v0:{time}:{body}"),
            time: text("header:x-slack-request-timestamp"),
            key: texts(&["json:/event_id", "content"]),
            ..WebhookScheme::default()
        },
        WebhookName::Twilio => WebhookScheme {
            header: text("x-twilio-signature"),
            algorithm: Some(WebhookAlgorithm::Sha1),
            encoding: Some(WebhookEncoding::Base64),
            signed: text("{url}{form}"),
            ..WebhookScheme::default()
        },
        // The time is in the body, and differs in each attempt. Linear recommends a tolerance of a minute.
        WebhookName::Linear => WebhookScheme {
            header: text("linear-signature"),
            time: text("json:/webhookTimestamp"),
            time_unit: Some(WebhookTimeUnit::Ms),
            tolerance: Some(Span(Duration::from_secs(60))),
            content_exclude: texts(&["/webhookTimestamp"]),
            ..WebhookScheme::default()
        },
        WebhookName::CloudEvents => WebhookScheme { key: texts(&["cloudevent"]), ..WebhookScheme::default() },
    }
}

/// Standard Webhooks, with header names that begin with `brand`.
fn standard(brand: &str) -> WebhookScheme {
    WebhookScheme {
        header: Some(format!("{brand}-signature")),
        encoding: Some(WebhookEncoding::Base64),
        separator: text(" "),
        prefix: text("v1,"),
        signed: Some(format!("{{header:{brand}-id}}.{{time}}.{{body}}")),
        time: Some(format!("header:{brand}-timestamp")),
        key: Some(vec![format!("header:{brand}-id")]),
        secret_encoding: Some(WebhookSecretEncoding::Base64),
        ..WebhookScheme::default()
    }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn texts(texts: &[&str]) -> Option<Vec<String>> {
    Some(texts.iter().map(|text| (*text).to_owned()).collect())
}
