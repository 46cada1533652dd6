//! The stored form of a dead letter: `spec/record-format.md`.

use bytes::Bytes;
use hapax_core::Recorded;
use serde::{Deserialize, Serialize};

use super::DeadReason;
use crate::events::event::Event;
use crate::events::headers::Headers;

/// What the metadata of a dead letter says, with the event put together.
pub(super) struct Meta {
    pub(super) reason: String,
    pub(super) error: String,
    pub(super) attempt: u32,
    pub(super) destination: Option<String>,
    pub(super) event: Event,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    reason: String,
    error: String,
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    event: StoredEvent,
}

#[derive(Serialize, Deserialize)]
struct StoredEvent {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<StoredPosition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<StoredHeader>,
}

#[derive(Serialize, Deserialize)]
struct StoredPosition {
    stream: String,
    at: String,
}

#[derive(Serialize, Deserialize)]
struct StoredHeader {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

pub(super) fn write(
    event: &Event,
    reason: DeadReason,
    error: &str,
    attempt: u32,
    destination: Option<&str>,
) -> Vec<u8> {
    let position = event.position.as_ref();
    let stored = Stored {
        reason: reason.name().to_owned(),
        error: error.to_owned(),
        attempt,
        destination: destination.map(str::to_owned),
        event: StoredEvent {
            kind: event.kind.clone(),
            key: event.key.clone(),
            id: event.id.clone(),
            source: event.source.clone(),
            subject: event.subject.clone(),
            time: event.time.clone(),
            content_type: event.content_type.clone(),
            order: event.order.clone(),
            position: position
                .map(|position| StoredPosition { stream: position.stream.clone(), at: position.at.clone() }),
            headers: event.headers.iter().map(|(name, value)| StoredHeader::new(name, value)).collect(),
        },
    };
    serde_json::to_vec(&stored).expect("strings and numbers always have a JSON form")
}

/// A property that may be absent, and how it is set.
type Setter = (Option<String>, fn(Event, String) -> Event);

/// `None` if the metadata is of another form.
pub(super) fn read(recorded: &Recorded) -> Option<Meta> {
    let Stored { reason, error, attempt, destination, event: stored } =
        serde_json::from_slice(&recorded.meta).ok()?;
    let headers: Option<Vec<(String, Bytes)>> = stored.headers.into_iter().map(StoredHeader::read).collect();
    let mut event = Event::new(stored.kind)
        .data(recorded.payload.clone())
        .headers(headers?.into_iter().collect::<Headers>());
    let setters: [Setter; 7] = [
        (stored.key, |event, key| event.key(key)),
        (stored.id, |event, id| event.id(id)),
        (stored.source, |event, source| event.source(source)),
        (stored.subject, |event, subject| event.subject(subject)),
        (stored.time, |event, time| event.time(time)),
        (stored.content_type, |event, content_type| event.content_type(content_type)),
        (stored.order, |event, order| event.order(order)),
    ];
    for (value, set) in setters {
        if let Some(value) = value {
            event = set(event, value);
        }
    }
    if let Some(StoredPosition { stream, at }) = stored.position {
        event = event.position(stream, at);
    }
    Some(Meta { reason, error, attempt, destination, event })
}

impl StoredHeader {
    fn new(name: &str, value: &[u8]) -> Self {
        let name = name.to_owned();
        match std::str::from_utf8(value) {
            Ok(text) => Self { name, value: Some(text.to_owned()), hex: None },
            Err(_) => {
                let hex = value.iter().map(|byte| format!("{byte:02x}")).collect();
                Self { name, value: None, hex: Some(hex) }
            }
        }
    }

    fn read(self) -> Option<(String, Bytes)> {
        match (self.value, self.hex) {
            (Some(text), None) => Some((self.name, text.into())),
            (None, Some(hex)) => Some((self.name, bytes_of_hex(&hex)?.into())),
            _ => None,
        }
    }
}

pub(super) fn bytes_of_hex(hex: &str) -> Option<Vec<u8>> {
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}
