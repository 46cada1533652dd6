//! Webhooks through axum and the layer: the signature is verified first, then the event is claimed; a duplicate is
//! acknowledged and not run.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hapax::http::{HttpPolicy, IdempotencyLayer, Webhook};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use sha2::Sha256;
use tower::ServiceExt as _;

use crate::world::World;

const SECRET: &str = "aHVzaCBodXNoIGh1c2ggaHVzaA==";

type Lines = Vec<(&'static str, String)>;

/// A sender: its name in a policy, and how it writes one event with its id and its body.
struct Sender {
    webhook: Webhook,
    write: fn(id: &str, item: &str) -> (Lines, String),
    /// The header of the signature, which covers the body; `None` if it does not sign.
    signature: Option<&'static str>,
    /// Whether its id identifies an event, independent of the content.
    names_events: bool,
}

fn mac(secret: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> String {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().to_string()
}

fn standard() -> Sender {
    let write = |id: &str, item: &str| {
        let (now, body) = (now(), format!("{{\"item\":\"{item}\"}}"));
        let signed = format!("{id}.{now}.{body}");
        let signature = mac(&BASE64_STANDARD.decode(SECRET).unwrap(), &[signed.as_bytes()]);
        let lines = vec![
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", now),
            ("webhook-signature", format!("v1,{}", BASE64_STANDARD.encode(signature))),
        ];
        (lines, body)
    };
    let webhook = Webhook::standard([format!("whsec_{SECRET}")]).unwrap();
    Sender { webhook, write, signature: Some("webhook-signature"), names_events: true }
}

fn github() -> Sender {
    let write = |id: &str, item: &str| {
        let body = format!("{{\"delivery\":\"{id}\",\"item\":\"{item}\"}}");
        let signature = hex(&mac(SECRET.as_bytes(), &[body.as_bytes()]));
        let lines = vec![
            ("x-github-delivery", id.to_owned()),
            ("x-hub-signature-256", format!("sha256={signature}")),
        ];
        (lines, body)
    };
    Sender {
        webhook: Webhook::github([SECRET]).unwrap(),
        write,
        signature: Some("x-hub-signature-256"),
        names_events: false,
    }
}

fn stripe() -> Sender {
    let write = |id: &str, item: &str| {
        let (now, body) = (now(), format!("{{\"id\":\"{id}\",\"item\":\"{item}\"}}"));
        let signature = hex(&mac(SECRET.as_bytes(), &[now.as_bytes(), b".", body.as_bytes()]));
        (vec![("stripe-signature", format!("t={now},v1={signature}"))], body)
    };
    Sender {
        webhook: Webhook::stripe([SECRET]).unwrap(),
        write,
        signature: Some("stripe-signature"),
        names_events: true,
    }
}

fn cloud_events() -> Sender {
    let write = |id: &str, item: &str| {
        let lines = vec![
            ("ce-specversion", "1.0".to_owned()),
            ("ce-source", "/shop".to_owned()),
            ("ce-type", "order".to_owned()),
            ("ce-id", id.to_owned()),
            ("content-type", "text/plain".to_owned()),
        ];
        (lines, item.to_owned())
    };
    Sender { webhook: Webhook::cloud_events(), write, signature: None, names_events: true }
}

fn senders() -> [Sender; 4] {
    [standard(), github(), stripe(), cloud_events()]
}

/// A receiver that counts events, and fails at those about `trouble`.
fn receiver(world: &World, webhook: Webhook) -> Router {
    let effects = world.effects.clone();
    let receive = move |body: String| async move {
        let count = effects.happen();
        let failed = body.contains("trouble");
        let status = if failed { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        (status, format!("event {count}"))
    };
    let idempotency = IdempotencyLayer::new(&world.hapax).policy(HttpPolicy::default().webhook(webhook));
    Router::new().route("/hook", post(receive)).layer(idempotency)
}

async fn deliver(app: &Router, (lines, body): (Lines, String)) -> Response<Vec<u8>> {
    let mut request = Request::post("/hook");
    for (name, value) in lines {
        request = request.header(name, value);
    }
    let response = app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test]
async fn p_03_a_duplicate_is_answered_2xx_and_not_run() {
    for Sender { webhook, write, names_events, .. } in senders() {
        let name = format!("{webhook:?}");
        let world = World::new();
        let app = receiver(&world, webhook);
        for (id, item, event, replayed) in [
            ("e1", "book", 1, false),
            ("e1", "book", 1, true),
            ("e2", "book", 2, false),
            // Senders write the same event again, with another time in it: the id identifies it.
            ("e1", if names_events { "book, sent again" } else { "book" }, 1, true),
        ] {
            let answer = deliver(&app, write(id, item)).await;
            assert_eq!(answer.status(), StatusCode::OK, "{name} {id}");
            assert_eq!(answer.body(), format!("event {event}").as_bytes(), "{name} {id}");
            assert_eq!(answer.headers().contains_key("x-idempotent-replayed"), replayed, "{name} {id}");
        }
        assert_eq!(world.effects.count(), 2, "{name}");
    }
}

#[tokio::test]
async fn p_03_a_recorded_delivery_does_not_run_with_another_id() {
    let Sender { webhook, write, .. } = github();
    let world = World::new();
    let app = receiver(&world, webhook);
    for (id, replayed) in [("e1", false), ("e2", true), ("e3", true)] {
        let (mut lines, body) = write("e1", "book");
        lines[0].1 = id.to_owned();
        let answer = deliver(&app, (lines, body)).await;
        assert_eq!(answer.body(), b"event 1", "{id}");
        assert_eq!(answer.headers().contains_key("x-idempotent-replayed"), replayed, "{id}");
    }
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test]
async fn p_03_another_credential_is_the_same_event() {
    for Sender { webhook, write, .. } in senders() {
        let name = format!("{webhook:?}");
        let world = World::new();
        let app = receiver(&world, webhook);
        for (credential, replayed) in [(None, false), (Some("Bearer one"), true), (Some("Bearer two"), true)]
        {
            let (mut lines, body) = write("e1", "book");
            lines.extend(credential.map(|credential| ("authorization", credential.to_owned())));
            let answer = deliver(&app, (lines, body)).await;
            assert_eq!(answer.body(), b"event 1", "{name} {credential:?}");
            assert_eq!(
                answer.headers().contains_key("x-idempotent-replayed"),
                replayed,
                "{name} {credential:?}"
            );
        }
        assert_eq!(world.effects.count(), 1, "{name}");
    }
}

#[tokio::test]
async fn p_03_an_event_that_failed_is_run_again() {
    for Sender { webhook, write, .. } in senders() {
        let name = format!("{webhook:?}");
        let world = World::new();
        let app = receiver(&world, webhook);
        for _ in 0..2 {
            assert_eq!(
                deliver(&app, write("e1", "trouble")).await.status(),
                StatusCode::BAD_REQUEST,
                "{name}"
            );
        }
        assert_eq!(deliver(&app, write("e1", "book")).await.status(), StatusCode::OK, "{name}");
        assert_eq!(world.effects.count(), 3, "{name}");
    }
}

#[tokio::test]
async fn p_03_the_signature_is_checked_before_anything_is_claimed() {
    for Sender { webhook, write, signature, .. } in senders() {
        let name = format!("{webhook:?}");
        let Some(signature) = signature else { continue };
        let world = World::new();
        let app = receiver(&world, webhook);
        let (lines, body) = write("e1", "book");
        let unsigned: Lines = lines.iter().filter(|(line, _)| *line != signature).cloned().collect();
        for forged in [(unsigned, body.clone()), (lines.clone(), body.replace("book", "yacht"))] {
            let answer = deliver(&app, forged).await;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{name}");
            let problem: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
            assert!(problem["type"].as_str().unwrap().ends_with("/signature-invalid"), "{name}: {problem}");
        }
        assert_eq!((world.effects.count(), world.faulty.calls()), (0, 0), "{name}");
        assert_eq!(deliver(&app, (lines, body)).await.status(), StatusCode::OK, "{name}");
    }
}

#[tokio::test]
async fn p_03_a_replay_with_a_wrong_signature_is_refused() {
    for Sender { webhook, write, signature, .. } in senders() {
        let name = format!("{webhook:?}");
        let Some(signature) = signature else { continue };
        let world = World::new();
        let app = receiver(&world, webhook);
        deliver(&app, write("e1", "book")).await;
        let (mut lines, body) = write("e1", "book");
        lines.retain(|(line, _)| *line != signature);
        let answer = deliver(&app, (lines, body)).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{name}");
        assert!(!String::from_utf8_lossy(answer.body()).contains("event 1"), "{name}");
    }
}
