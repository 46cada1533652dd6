//! The stored form, both ways.

use bytes::Bytes;
use hapax_core::{Class, Format};

use super::redrive::redriven_event;
use super::*;
use crate::events::headers::Headers;

fn event() -> Event {
    Event::new("order.paid")
        .key("k")
        .id("evt-7")
        .source("/shop")
        .subject("order-1")
        .time("2026-11-20T00:00:00Z")
        .content_type("application/json")
        .order("order-1")
        .position("ORDERS", 7)
        .headers(
            [("trace", Bytes::from_static(b"00-1")), ("raw", Bytes::from_static(&[0xff, 0]))]
                .into_iter()
                .collect::<Headers>(),
        )
        .data("{\"a\":1}")
}

#[test]
fn an_event_reads_back_as_it_was_written() {
    let dead = recorded(&event(), DeadReason::Failed, "no stock", 8, Some("orders"));
    assert_eq!((dead.class, dead.format), (Class::Error, Format::DEAD_LETTER));
    assert_eq!(dead.payload, event().data);
    let read = meta::read(&dead).unwrap();
    assert!(read.event == event());
    assert_eq!((&*read.reason, &*read.error, read.attempt), ("failed", "no stock", 8));
    assert_eq!(read.destination.as_deref(), Some("orders"));
    let bare = recorded(&Event::new("a"), DeadReason::Lost, "", 0, None);
    let read = meta::read(&bare).unwrap();
    assert!(read.event == Event::new("a"));
    assert_eq!(read.error, DeadReason::Lost.words());
}

#[test]
fn the_stored_form_is_as_specified() {
    let dead = recorded(&event(), DeadReason::Failed, "no stock", 8, Some("orders"));
    let meta: serde_json::Value = serde_json::from_slice(&dead.meta).unwrap();
    let expected = serde_json::json!({
        "reason": "failed", "error": "no stock", "attempt": 8, "destination": "orders",
        "event": {
            "type": "order.paid", "key": "k", "id": "evt-7", "source": "/shop", "subject": "order-1",
            "time": "2026-11-20T00:00:00Z", "content_type": "application/json", "order": "order-1",
            "position": { "stream": "ORDERS", "at": "7" },
            "headers": [{ "name": "trace", "value": "00-1" }, { "name": "raw", "hex": "ff00" }],
        },
    });
    assert_eq!(meta, expected);
}

#[test]
fn another_form_is_unreadable_and_unknown_members_are_ignored() {
    let with = |meta: &str| {
        let recorded = Recorded::new(Class::Error, Format::DEAD_LETTER, "x").with_meta(meta.to_owned());
        meta::read(&recorded).is_some()
    };
    assert!(with(r#"{"reason":"new","error":"e","attempt":1,"later":2,"event":{"type":"a","later":1}}"#));
    assert!(!with("{}"));
    assert!(!with("not JSON"));
    for header in [r#"{"name":"a"}"#, r#"{"name":"a","hex":"f"}"#, r#"{"name":"a","hex":"zz"}"#] {
        let meta = format!(
            r#"{{"reason":"r","error":"e","attempt":1,"event":{{"type":"a","headers":[{header}]}}}}"#
        );
        assert!(!with(&meta), "{header}");
    }
}

#[test]
fn a_long_error_is_cut_at_a_character() {
    let dead = recorded(&event(), DeadReason::Failed, &"ä".repeat(4000), 1, None);
    let read = meta::read(&dead).unwrap();
    assert_eq!(read.error, "ä".repeat(2048));
}

#[test]
fn every_reason_has_a_name_of_its_own() {
    for reason in DeadReason::ALL {
        assert_eq!(DeadReason::from_name(reason.name()), Some(reason));
    }
    assert_eq!(DeadReason::from_name("other"), None);
}

#[test]
fn v_07_a_redriven_event_keeps_its_key_and_names_its_dead_letter() {
    let letter = |event: Event| DeadLetter {
        id: RecordId::from_bytes([7; 32]),
        nonce: Nonce::from_bytes([9; 16]),
        namespace: String::new(),
        consumer: "billing".to_owned(),
        reason: "failed".to_owned(),
        error: String::new(),
        attempt: 1,
        destination: None,
        event,
        created_at: Timestamp::default(),
        dead_since: Timestamp::default(),
    };
    let named = redriven_event(&letter(event().header(REDRIVE_HEADER, "older")));
    let header = RedriveHeader::of(&named).unwrap();
    assert_eq!(
        (header.nonce, header.record),
        (Nonce::from_bytes([9; 16]), Some(RecordId::from_bytes([7; 32])))
    );
    assert_eq!(named.headers.get_all(REDRIVE_HEADER).count(), 1);
    assert_eq!(named.key, event().key);

    use crate::events::key::{EventKey, Unnamed};
    let positioned = Event::new("a").position("S", 1).data("x");
    let moved = redriven_event(&letter(positioned.clone())).position("S", 2);
    let key = |event: &Event| EventKey::of(event, Unnamed::Refuse).unwrap().key;
    assert_eq!(key(&positioned), key(&moved), "another position, the same event");
    assert!(RedriveHeader::of(&Event::new("a").header(REDRIVE_HEADER, "zz")).is_none());
}
