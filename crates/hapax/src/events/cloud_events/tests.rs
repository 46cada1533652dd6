use proptest::prelude::*;

use super::*;
use crate::events::{EventKey, Unnamed};

/// Text that an attribute may have.
fn text() -> impl Strategy<Value = String> {
    let character = any::<char>().prop_filter("allowed in an attribute", |character| {
        crate::events::envelope::check_value("text", &character.to_string()).is_ok()
    });
    prop::collection::vec(character, 1..20).prop_map(|characters| characters.into_iter().collect())
}

/// The name of an extension attribute.
fn name() -> impl Strategy<Value = String> {
    let character = prop::sample::select(b"abcdefghijklmnopqrstuvwxyz0123456789".to_vec());
    // No attribute of the specification begins so.
    prop::collection::vec(character, 1..20)
        .prop_map(|rest| format!("x{}", String::from_utf8(rest).expect("letters and digits")))
}

/// A content type, and data that it fits or does not.
fn content() -> impl Strategy<Value = (Option<&'static str>, Vec<u8>)> {
    let json = prop_oneof![
        Just("null".to_owned()),
        Just("1.50".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just(r#"{"a": [1, {"b": "\u00e9"}], "a": 2}"#.to_owned()),
        text().prop_map(|text| serde_json::to_string(&text).expect("a string")),
    ];
    let types = || prop::sample::select(vec!["application/json", "application/vnd.shop+json; charset=utf-8"]);
    let others =
        prop::sample::select(vec!["text/plain", "application/xml", "application/octet-stream", "image/png"]);
    prop_oneof![
        (types(), json).prop_map(|(kind, json)| (Some(kind), json.into_bytes())),
        (types(), prop::collection::vec(any::<u8>(), 0..50)).prop_map(|(kind, data)| (Some(kind), data)),
        (others.clone(), text()).prop_map(|(kind, data)| (Some(kind), data.into_bytes())),
        (others, prop::collection::vec(any::<u8>(), 0..50)).prop_map(|(kind, data)| (Some(kind), data)),
        prop::collection::vec(any::<u8>(), 0..50).prop_map(|data| (None, data)),
    ]
}

/// Any event that can be written, without headers other than attributes.
fn event() -> impl Strategy<Value = Event> {
    let time = prop::sample::select(vec!["2026-11-19T08:30:00Z", "2026-11-19T08:30:00.5+01:00"]);
    let options = (
        prop::option::of(text()),
        prop::option::of(time),
        prop::option::of(text()),
        prop::option::of(text()),
        prop::collection::btree_map(name(), text(), 0..4),
    );
    (text(), text(), text(), options, content()).prop_map(
        |(kind, source, id, options, (content_type, data))| {
            let (subject, time, order, key, extensions) = options;
            let event = Event::new(kind).source(source).id(id).data(data);
            let event = subject.into_iter().fold(event, Event::subject);
            let event = time.into_iter().fold(event, Event::time);
            let event = content_type.into_iter().fold(event, Event::content_type);
            let event = order.into_iter().fold(event, Event::order);
            let event = key.into_iter().fold(event, Event::key);
            extensions
                .into_iter()
                .fold(event, |event, (name, value)| event.header(format!("ce-{name}"), value))
        },
    )
}

/// The event after it was written as JSON and read: space around JSON is not data, and its content type is explicit.
fn as_json(event: &Event) -> Event {
    let is_json = event.content_type.as_deref().is_none_or(crate::events::media_type::is_json);
    let json: Option<Box<serde_json::value::RawValue>> =
        serde_json::from_slice(&event.data).ok().filter(|_| is_json && !event.data.is_empty());
    let Some(json) = json else {
        return event.clone();
    };
    let event = event.clone().data(json.get().to_owned());
    if event.content_type.is_some() { event } else { event.content_type("application/json") }
}

proptest! {
    #[test]
    fn v_13_an_event_in_json_is_read_as_it_was_written(event in event()) {
        let json = write_json(&event).unwrap();
        prop_assert_eq!(read_json(&json).unwrap(), as_json(&event));
        // As a whole message, whose other headers stay.
        let headers = [("Content-Type", &b"application/CloudEvents+json; charset=utf-8"[..]), ("x-other", b"\xff")];
        let read = Binding::Http.read(headers, json).unwrap().unwrap();
        prop_assert_eq!(read, as_json(&event).header("x-other", &b"\xff"[..]));
    }

    #[test]
    fn v_13_a_batch_is_read_as_it_was_written(events in prop::collection::vec(event(), 0..4)) {
        let json = write_batch(&events).unwrap();
        let expected: Vec<Event> = events.iter().map(as_json).collect();
        prop_assert_eq!(read_batch(&json).unwrap(), expected);
    }

    #[test]
    fn v_13_an_event_in_headers_is_read_as_it_was_written(
        event in event(),
        other in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let event = event.header("x-other", other);
        for binding in [Binding::Http, Binding::Nats, Binding::Kafka, Binding::Amqp] {
            let headers = binding.write(&event).unwrap();
            let read = binding.read(headers.iter(), event.data.clone()).unwrap();
            prop_assert_eq!(read.as_ref(), Some(&event), "{:?}", binding);
        }
    }

    #[test]
    fn v_01_an_event_has_one_key_in_all_modes(event in event()) {
        let key = |event: &Event| EventKey::of(event, Unnamed::Refuse).unwrap();
        prop_assert_eq!(key(&read_json(&write_json(&event).unwrap()).unwrap()), key(&event));
        let headers = Binding::Kafka.write(&event).unwrap();
        prop_assert_eq!(key(&Binding::Kafka.read(headers.iter(), "").unwrap().unwrap()), key(&event));
    }

    #[test]
    fn v_06_an_event_has_one_fingerprint_in_all_modes(event in event()) {
        let read = read_json(&write_json(&event).unwrap()).unwrap();
        prop_assert_eq!(read.fingerprint(), event.fingerprint());
    }

    #[test]
    fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), value in prop::collection::vec(any::<u8>(), 0..30)) {
        let _ = (read_json(&bytes), read_batch(&bytes), crate::events::event_bridge::read(&bytes));
        for binding in [Binding::Http, Binding::Kafka] {
            for name in ["ce-specversion", "ce_id", "content-type"] {
                let _ = binding.read([("ce_specversion", &b"1.0"[..]), (name, &*value)], bytes.clone());
            }
        }
    }
}

/// The smallest event.
fn smallest() -> Event {
    Event::new("order.paid").source("/shop").id("42")
}

#[test]
fn bindings_have_their_own_names_and_encodings() {
    let event =
        smallest().subject("Bestellung 7").content_type("text/plain").header("x-other", "1").data("paid");
    let of = |binding: Binding| {
        let headers = binding.write(&event).unwrap();
        let text = |(name, value): (&str, &[u8])| format!("{name}: {}", String::from_utf8_lossy(value));
        headers.iter().map(text).collect::<Vec<_>>()
    };
    let common = |prefix: &str, subject: &str, content_type: &str| {
        [
            format!("{prefix}specversion: 1.0"),
            format!("{prefix}id: 42"),
            format!("{prefix}source: /shop"),
            format!("{prefix}type: order.paid"),
            format!("{prefix}subject: {subject}"),
            format!("{content_type}: text/plain"),
            "x-other: 1".to_owned(),
        ]
    };
    assert_eq!(of(Binding::Http), common("ce-", "Bestellung%207", "content-type"));
    assert_eq!(of(Binding::Nats), common("ce-", "Bestellung%207", "ce-datacontenttype"));
    assert_eq!(of(Binding::Kafka), common("ce_", "Bestellung 7", "content-type"));
    assert_eq!(of(Binding::Amqp), common("cloudEvents_", "Bestellung 7", "content-type"));
}

#[test]
fn v_13_an_event_that_would_be_refused_is_not_written() {
    for (event, text) in [
        (Event::new("a").source("/s"), "`id` is missing"),
        (Event::new("a").id("1"), "`source` is missing"),
        (Event::new("").source("/s").id("1"), "`type` is empty"),
        (smallest().id(""), "`id` is empty"),
        (smallest().subject("a\nb"), "`subject` has a control character or a noncharacter"),
        (smallest().time("yesterday"), "`time` is not a time of RFC 3339"),
        (smallest().header("ce-id", "2"), "`id` occurs more than once"),
        (smallest().order("1").header("ce-partitionkey", "2"), "`partitionkey` occurs more than once"),
        (smallest().header("ce-a", "1").header("CE-A", "2"), "`a` occurs more than once"),
        (smallest().header("ce-a", &b"\xff"[..]), "`a` is not UTF-8"),
        (
            smallest().header("ce-a-b", "1"),
            "\"a-b\" is not the name of an attribute: 64 lower-case letters and digits at most",
        ),
    ] {
        assert_eq!(write_json(&event).unwrap_err().to_string(), text);
        assert_eq!(Binding::Kafka.write(&event).unwrap_err().to_string(), text);
        let error = write_batch([&smallest(), &event]).unwrap_err();
        assert_eq!(error.to_string(), format!("event 1 of the batch: {text}"));
    }
    let nested = smallest().content_type(JSON);
    assert_eq!(
        Binding::Http.write(&nested).unwrap_err().to_string(),
        "`datacontenttype` is that of an envelope, so the message would be read as one"
    );
    assert!(Binding::Nats.write(&nested).is_ok());
}

#[test]
fn v_13_a_batch_is_bounded() {
    let batch = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    let error = |count| read_batch(batch(count).as_bytes()).unwrap_err().name();
    assert_eq!((error(10_000), error(10_001)), ("in_batch", "invalid"));
}

#[test]
fn a_message_without_a_version_of_cloud_events_is_none() {
    let headers = [("ce-id", &b"1"[..]), ("ce_specversion", b"1.0"), ("content-type", b"application/json")];
    assert_eq!(Binding::Http.read(headers, "{}").unwrap(), None);
    assert!(Binding::Kafka.read(headers, "{}").is_err());
}
