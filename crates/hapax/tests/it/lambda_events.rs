//! What AWS Lambda invokes functions with, in the shapes that AWS documents, as events.

use hapax::Key;
use hapax::events::lambda::{EventBridge, SnsBatch, SqsBatch, SqsBatchResponse};
use hapax::events::{Event, EventKey, KeyOrigin, Unnamed};

fn sqs(json: &str) -> Vec<Event> {
    let batch: SqsBatch = serde_json::from_str(json).unwrap();
    batch.records.iter().map(Event::from).collect()
}

fn standard() -> Vec<Event> {
    sqs(include_str!("lambda_events/sqs_standard.json"))
}

fn key(event: &Event) -> EventKey {
    EventKey::of(event, Unnamed::Refuse).unwrap()
}

fn data(event: &Event) -> &str {
    std::str::from_utf8(&event.data).unwrap()
}

#[test]
fn v_01_a_message_of_a_standard_queue_is_named_by_its_id() {
    let event = &standard()[0];
    assert_eq!((&*event.kind, data(event)), ("", "paid"));
    assert_eq!(event.id.as_deref(), Some("059f36b4-87a3-44ab-83d2-661975830a7d"));
    assert_eq!(event.headers.text("aws-queue-arn"), Some("arn:aws:sqs:eu-central-1:123456789012:orders"));
    assert_eq!(key(event).origin, KeyOrigin::Id);
    // A group of a standard queue is a tenant: its messages have no order.
    assert_eq!(event.order, None);
}

#[test]
fn v_01_a_notification_inside_of_a_queue_is_named_by_its_topic() {
    let event = &standard()[1];
    assert_eq!((&*event.kind, data(event)), ("order.paid", r#"{"order":"order-123"}"#));
    assert_eq!(event.id.as_deref(), Some("95df01b4-ee98-5cb9-9903-4c221d41eb5e"));
    assert_eq!(event.time.as_deref(), Some("2026-11-19T08:30:00.000Z"));
    let direct: SnsBatch = serde_json::from_str(include_str!("lambda_events/sns.json")).unwrap();
    let direct = Event::from(&direct.messages[0]);
    assert_eq!(key(&direct), key(event));
    assert_eq!(direct.fingerprint(), event.fingerprint());
    assert_eq!(direct.headers.text("aws-subject"), Some("An order was paid"));
    assert_eq!(direct.headers.get("signature"), Some(&b"\xff\x00\x01"[..]));
}

#[test]
fn v_01_an_event_of_event_bridge_has_one_key_by_every_way() {
    let json = include_str!("lambda_events/event_bridge.json");
    let direct = Event::from(serde_json::from_str::<EventBridge>(json).unwrap());
    assert_eq!((&*direct.kind, direct.source.as_deref()), ("order.paid", Some("shop.orders")));
    assert_eq!(direct.time.as_deref(), Some("2026-11-19T08:30:00Z"));
    assert_eq!(direct.headers.text("aws-account"), Some("123456789012"));
    let resources: Vec<String> = serde_json::from_str(direct.headers.text("aws-resources").unwrap()).unwrap();
    assert_eq!(resources, ["arn:aws:dynamodb:eu-central-1:123456789012:table/orders"]);
    assert!(
        data(&direct).contains("12.50") && data(&direct).contains("12345678901234567890123"),
        "as written"
    );
    assert_eq!(key(&direct).origin, KeyOrigin::SourceAndId);
    let queued = &standard()[2];
    assert_eq!(key(queued), key(&direct));
    assert_eq!(queued.headers.text("aws-queue-arn"), Some("arn:aws:sqs:eu-central-1:123456789012:orders"));
}

#[test]
fn v_01_a_fifo_message_is_named_by_queue_group_and_deduplication_id() {
    let json = include_str!("lambda_events/sqs_fifo.json");
    let event = &sqs(json)[0];
    assert_eq!((&*event.kind, event.order.as_deref()), ("order.paid", Some("order-123")));
    assert_eq!(event.headers.get("signature"), Some(&b"\xff\x00\x01"[..]));
    let parts = ["arn:aws:sqs:eu-central-1:123456789012:orders.fifo", "order-123", "paid"];
    assert_eq!(key(event).key, Key::of_parts("hapax sqs deduplication 1", parts));
    for (from, to, same) in [
        ("11d6ee51-4cc7-4302-9e22-7cd8afdaadf5", "22d6ee51-4cc7-4302-9e22-7cd8afdaadf5", true),
        ("\"MessageDeduplicationId\": \"paid\"", "\"MessageDeduplicationId\": \"paid2\"", false),
        ("\"MessageGroupId\": \"order-123\"", "\"MessageGroupId\": \"order-124\"", false),
        (":orders.fifo", ":returns.fifo", false),
    ] {
        let other = sqs(&json.replace(from, to));
        assert_eq!(key(&other[0]) == key(event), same, "{to}");
    }
}

#[test]
fn v_01_a_cloud_event_inside_of_a_fifo_queue_keeps_its_own_key() {
    let event = &sqs(include_str!("lambda_events/sqs_fifo.json"))[1];
    assert_eq!(key(event), key(&Event::new("order.sent").source("/shop").id("43")));
    assert_eq!((event.order.as_deref(), data(event)), (Some("order-123"), r#"{"order":"order-123"}"#));
}

#[test]
fn v_13_an_invalid_envelope_is_kept_as_it_is_and_says_why() {
    let event = &standard()[3];
    assert_eq!(event.headers.text("hapax-unreadable"), Some("`id` is missing"));
    assert_eq!((&*event.kind, event.id.as_deref()), ("", Some("d91f9132-b81b-53d8-b581-8a7f2297a864")));
    assert!(data(event).starts_with(r#"{"specversion":"1.0""#));
}

#[test]
fn v_13_an_invalid_event_of_event_bridge_is_an_error_that_names_the_member() {
    let json = include_str!("lambda_events/event_bridge.json");
    for (from, to, text) in [
        ("\"version\": \"0\"", "\"version\": \"1\"", "`version` is not \"0\", the only known version"),
        ("\"id\"", "\"ID\"", "`id` is missing"),
        ("\"shop.orders\"", "\"\"", "`source` is empty"),
        ("2026-11-19T08:30:00Z", "yesterday", "`time` is not a time of RFC 3339"),
    ] {
        let error = serde_json::from_str::<EventBridge>(&json.replace(from, to)).unwrap_err();
        assert!(error.to_string().starts_with(text), "{error}");
    }
}

#[test]
fn the_order_of_a_queue_and_its_redeliveries_are_known() {
    let batch: SqsBatch = serde_json::from_str(include_str!("lambda_events/sqs_fifo.json")).unwrap();
    let seen: Vec<_> = batch.records.iter().map(|message| (message.redelivered(), message.order())).collect();
    assert_eq!(seen, [(true, Some("order-123")), (false, Some("order-123"))]);
}

#[test]
fn the_response_names_the_messages_to_deliver_again() {
    let json = |response: &SqsBatchResponse| serde_json::to_string(response).unwrap();
    assert_eq!(json(&SqsBatchResponse::default()), r#"{"batchItemFailures":[]}"#);
    assert_eq!(
        json(&SqsBatchResponse::failed(["1", "2"])),
        r#"{"batchItemFailures":[{"itemIdentifier":"1"},{"itemIdentifier":"2"}]}"#
    );
}

#[test]
fn debug_shows_no_content() {
    let batch: SqsBatch = serde_json::from_str(include_str!("lambda_events/sqs_fifo.json")).unwrap();
    let sns: SnsBatch = serde_json::from_str(include_str!("lambda_events/sns.json")).unwrap();
    for text in [format!("{batch:?}"), format!("{sns:?}"), format!("{:?}", Event::from(&batch.records[0]))] {
        assert!(!text.contains("order-123"), "{text}");
    }
}
