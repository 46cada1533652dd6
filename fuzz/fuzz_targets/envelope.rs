//! Envelopes of events: an event that is read has a key, and is the same event after it was written and read again.

#![no_main]

use hapax::events::cloud_events::{self, Binding};
use hapax::events::{Event, EventKey, Unnamed, event_bridge};
use libfuzzer_sys::fuzz_target;

fn key(event: &Event) -> EventKey {
    EventKey::of(event, Unnamed::Refuse).expect("an envelope has a source and an id")
}

/// Checks that both are one event for every consumer. Headers are compared where the envelope has a place for them: those
/// of a message beside a structured envelope are no attributes.
fn check_same(read: &Event, again: &Event) {
    assert_eq!(key(read), key(again));
    assert_eq!(read.fingerprint(), again.fingerprint());
}

fn check(event: &Event) {
    let json = cloud_events::write_json(event).expect("what was read can be written");
    let again = cloud_events::read_json(&json).expect("what was written can be read");
    check_same(event, &again);
    let json = cloud_events::write_json(&again).expect("what was read can be written");
    assert_eq!(cloud_events::read_json(&json).expect("what was written can be read").headers, again.headers);
    for binding in [Binding::Http, Binding::Nats] {
        // A content type may be that of an envelope.
        let Ok(headers) = binding.write(event) else { continue };
        let again = binding.read(headers.iter(), event.data.clone()).expect("what was written can be read");
        assert_eq!(again.as_ref(), Some(event));
    }
}

fuzz_target!(|input: &[u8]| {
    if let Ok(event) = cloud_events::read_json(input) {
        check(&event);
    }
    if let Ok(events) = cloud_events::read_batch(input) {
        let again = cloud_events::write_batch(&events).expect("what was read can be written");
        let again = cloud_events::read_batch(&again).expect("what was written can be read");
        assert_eq!(events.len(), again.len());
        events.iter().zip(&again).for_each(|(event, again)| check_same(event, again));
    }
    if let Ok(event) = event_bridge::read(input) {
        key(&event);
    }
    let Some((parts, body)) = hapax_fuzz::request(input) else { return };
    let headers: Vec<(&str, &[u8])> =
        parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    if let Ok(Some(event)) = Binding::Http.read(headers.iter().copied(), body.clone()) {
        check(&event);
    }
    for binding in [Binding::Nats, Binding::Kafka, Binding::Amqp] {
        if let Ok(Some(event)) = binding.read(headers.iter().copied(), body.clone()) {
            key(&event);
        }
    }
});
