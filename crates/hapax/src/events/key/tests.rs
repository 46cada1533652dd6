use hapax_core::Key;

use super::*;
use crate::events::Event;

fn key_of(event: &Event) -> EventKey {
    EventKey::of(event, Unnamed::Refuse).unwrap()
}

#[test]
fn v_01_a_key_is_made_of_the_first_identity() {
    let position = Event::new("a").data("1").position("ORDERS", 7);
    let id = position.clone().id("42");
    let source = id.clone().source("/shop");
    let given = source.clone().key("order-42");
    for (event, origin) in [
        (&given, KeyOrigin::Given),
        (&source, KeyOrigin::SourceAndId),
        (&id, KeyOrigin::Id),
        (&position, KeyOrigin::Position),
    ] {
        assert_eq!(key_of(event).origin, origin);
    }
    // A source alone names no event.
    assert_eq!(key_of(&position.clone().source("/shop")), key_of(&position));
    assert_eq!(key_of(&source), key_of(&Event::new("b").source("/shop").id("42")));
    assert_eq!(key_of(&id), key_of(&Event::new("b").id("42")));
}

#[test]
fn v_01_a_given_key_is_used_as_it_is_if_it_may_be_a_key() {
    let given = |text: &str| key_of(&Event::new("a").id("1").key(text));
    assert_eq!(given("order-42").key, Key::new("order-42").unwrap());
    for text in ["Bestellung für Łódź", " ", &"x".repeat(256)] {
        let key = given(text);
        assert_eq!((key.origin, key.key.as_str().len()), (KeyOrigin::Given, 32), "{text:?}");
    }
    assert_ne!(given(" ").key, given("  ").key);
}

#[test]
fn v_01_parts_are_never_joined() {
    let pairs = [("/shop", "1/2"), ("/shop/1", "2"), ("/shop", "1"), ("/sho", "p1"), ("1", "/shop")];
    let mut keys = Vec::new();
    for (left, right) in pairs {
        keys.push(key_of(&Event::new("a").source(left).id(right)).key);
        keys.push(key_of(&Event::new("a").position(left, right)).key);
        keys.push(key_of(&Event::new("a").id([left, right].concat())).key);
        keys.push(key_of(&Event::new("a").id(format!("{left}{right}é")).key(format!("{left}{right}é"))).key);
    }
    let distinct: std::collections::HashSet<&Key> = keys.iter().collect();
    // `/shop` with `1` and `/sho` with `p1` are the same text where they are one id.
    assert_eq!((keys.len(), distinct.len()), (20, 18));
}

#[test]
fn v_01_a_position_has_the_identity_of_its_stream() {
    let at = |stream: &str| key_of(&Event::new("a").position(stream, 7)).key;
    assert_eq!(at("ORDERS created 1"), at("ORDERS created 1"));
    assert_ne!(at("ORDERS created 1"), at("ORDERS created 2"));
}

#[test]
fn v_01_an_event_without_a_name_is_refused_unless_its_content_names_it() {
    for event in [
        Event::new("a").data("1"),
        Event::new("a").data("1").source("/shop"),
        Event::new("a").data("1").key("").id("").position("", 7),
        Event::new("a").data("1").position("ORDERS", ""),
    ] {
        assert_eq!(EventKey::of(&event, Unnamed::Refuse), Err(UnnamedEvent));
        let key = EventKey::of(&event, Unnamed::ByContent).unwrap();
        assert_eq!(key.origin, KeyOrigin::Content);
        assert_eq!(key, EventKey::of(&Event::new("a").data("1"), Unnamed::ByContent).unwrap());
        for other in [Event::new("b").data("1"), Event::new("a").data("2"), event.clone().subject("s")] {
            assert_ne!(key, EventKey::of(&other, Unnamed::ByContent).unwrap());
        }
    }
    let named = Event::new("a").id("1");
    assert_eq!(EventKey::of(&named, Unnamed::ByContent), EventKey::of(&named, Unnamed::Refuse));
}

#[test]
fn v_01_keys_stay_the_same_in_later_versions() {
    let event = Event::new("a").source("/shop").id("42");
    let parts = ["source_and_id", "/shop", "42"];
    assert_eq!(key_of(&event).key, Key::of_parts("hapax event key 1", parts));
    assert_eq!(key_of(&event).key.as_str(), "cac1867f9faf9e224a3f5e7723b4309a");
}

#[test]
fn v_06_the_fingerprint_is_type_subject_and_data() {
    let event = Event::new("order.paid").subject("order-1").data(r#"{"a": 1, "b": 2}"#);
    let same = |other: &Event| event.fingerprint() == other.fingerprint();
    for other in [
        event.clone().data(r#"{"b":2,"a":1}"#),
        event.clone().content_type("application/json"),
        event.clone().id("1").source("/shop").time("2026-11-19T10:00:00Z").order("1").position("s", 1),
        event.clone().header("traceparent", "00-1"),
    ] {
        assert!(same(&other), "{other:?}");
    }
    for other in [
        Event::new("order.sent").subject("order-1").data(event.data.clone()),
        Event::new("order.paid").data(event.data.clone()),
        event.clone().subject(""),
        event.clone().data(r#"{"a":1,"b":3}"#),
        event.clone().data(""),
    ] {
        assert!(!same(&other), "{other:?}");
    }
}

#[test]
fn v_06_data_that_is_not_json_counts_byte_by_byte() {
    let of = |content_type: &str, data: &'static str| {
        Event::new("a").content_type(content_type).data(data).fingerprint()
    };
    assert_ne!(of("text/csv", "1, 2"), of("text/csv", "1,2"));
    assert_ne!(of("text/plain", "1 "), of("text/plain", "1"));
    assert_eq!(of("application/vnd.shop+json; charset=utf-8", "[1, 2]"), of("text/JSON", "[1,2]"));
    let bytes = |data: &'static [u8]| Event::new("a").data(data).fingerprint();
    assert_ne!(bytes(b"\xff\x00"), bytes(b"\xff"));
}
