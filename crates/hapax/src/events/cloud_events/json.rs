//! Structured and batched mode: events as JSON.

use bytes::Bytes;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::attributes::Attributes;
use crate::events::envelope::{EnvelopeError, Members};
use crate::events::event::Event;
use crate::events::{base64, media_type};

/// The maximum number of events of a batch.
const BATCH_MAX: usize = 10_000;

/// The content type of data in JSON, unless the event states another one.
const IMPLIED_CONTENT_TYPE: &str = "application/json";

/// Reads an event in JSON.
///
/// # Errors
/// [`EnvelopeError`] when it is not one.
pub fn read_json(json: &[u8]) -> Result<Event, EnvelopeError> {
    let members = Members::read(json)?;
    let mut attributes = Attributes::default();
    for (name, value) in &members.0 {
        if name != "data" && name != "data_base64" {
            if let Some(value) = attribute(name, value)? {
                attributes.add(name.clone(), value)?;
            }
        }
    }
    let event = attributes.into_event()?;
    match (members.get("data"), members.text("data_base64")?) {
        (None, None) => Ok(event),
        (Some(value), None) => with_data(event, value),
        (None, Some(text)) => match base64::decode(&text) {
            Some(bytes) => Ok(event.data(bytes)),
            None => Err(EnvelopeError::invalid("data_base64", "is not Base64 with padding")),
        },
        (Some(_), Some(_)) => Err(EnvelopeError::invalid("data_base64", "is there beside `data`")),
    }
}

/// Reads a batch of events in JSON, at most 10,000.
///
/// # Errors
/// [`EnvelopeError`] when one of them is not an event; then none is returned.
pub fn read_batch(json: &[u8]) -> Result<Vec<Event>, EnvelopeError> {
    let events: Vec<&RawValue> = serde_json::from_slice(json).map_err(|error| EnvelopeError::json(&error))?;
    if events.len() > BATCH_MAX {
        return Err(EnvelopeError::invalid("batch", "has more than 10,000 events"));
    }
    let read = |(index, event): (usize, &RawValue)| {
        read_json(event.get().as_bytes())
            .map_err(|error| EnvelopeError::InBatch { index, error: Box::new(error) })
    };
    events.into_iter().enumerate().map(read).collect()
}

/// Writes an event as JSON. Data is written as JSON if it is JSON, as a string if it is other text, else as Base64.
///
/// Headers that are no attributes are not written: they are headers of the message.
///
/// # Errors
/// [`EnvelopeError`] when the event has no id or no source, or an attribute is invalid.
pub fn write_json(event: &Event) -> Result<Vec<u8>, EnvelopeError> {
    let envelope = Envelope::of(event)?;
    Ok(serde_json::to_vec(&envelope).expect("strings and valid JSON can be written"))
}

/// Writes events as a batch in JSON.
///
/// # Errors
/// As [`write_json`], with the index of the event; then none is written.
pub fn write_batch<'e>(events: impl IntoIterator<Item = &'e Event>) -> Result<Vec<u8>, EnvelopeError> {
    let envelope = |(index, event)| {
        Envelope::of(event).map_err(|error| EnvelopeError::InBatch { index, error: Box::new(error) })
    };
    let envelopes = events.into_iter().enumerate().map(envelope).collect::<Result<Vec<_>, _>>()?;
    Ok(serde_json::to_vec(&envelopes).expect("strings and valid JSON can be written"))
}

/// The text of an attribute; `None` for `null`, which stands for an attribute that is not set.
fn attribute(name: &str, value: &RawValue) -> Result<Option<String>, EnvelopeError> {
    let json = value.get();
    let is_core = ["specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema"]
        .contains(&name);
    match json {
        "null" => Ok(None),
        "true" | "false" if !is_core => Ok(Some(json.to_owned())),
        // As the specification limits integers; a fraction or an exponent is not one.
        _ if !is_core && json.parse::<i32>().is_ok_and(|number| number.to_string() == json) => {
            Ok(Some(json.to_owned()))
        }
        _ => match serde_json::from_str(json) {
            Ok(text) => Ok(Some(text)),
            Err(_) if is_core => Err(EnvelopeError::invalid(name.to_owned(), "is not a string")),
            Err(_) => {
                let why = "is neither a string nor a boolean nor an integer of 32 bits";
                Err(EnvelopeError::invalid(name.to_owned(), why))
            }
        },
    }
}

/// The event with the member `data`, which is JSON unless the event states another content type.
fn with_data(event: Event, value: &RawValue) -> Result<Event, EnvelopeError> {
    match &event.content_type {
        None => {
            Ok(event.content_type(IMPLIED_CONTENT_TYPE).data(Bytes::copy_from_slice(value.get().as_bytes())))
        }
        Some(content_type) if media_type::is_json(content_type) => {
            Ok(event.data(Bytes::copy_from_slice(value.get().as_bytes())))
        }
        Some(_) => match serde_json::from_str::<String>(value.get()) {
            Ok(text) => Ok(event.data(text)),
            Err(_) => {
                Err(EnvelopeError::invalid("data", "is not a string, and its content type is not JSON"))
            }
        },
    }
}

/// An event in the form of its JSON.
struct Envelope<'a> {
    attributes: Vec<(String, String)>,
    data: DataMember<'a>,
}

enum DataMember<'a> {
    None,
    Json(&'a RawValue),
    Text(&'a str),
    Binary(&'a [u8]),
}

impl<'a> Envelope<'a> {
    fn of(event: &'a Event) -> Result<Self, EnvelopeError> {
        let attributes = Attributes::of(event)?.into_vec();
        Ok(Self { attributes, data: DataMember::of(event.content_type.as_deref(), &event.data) })
    }
}

impl<'a> DataMember<'a> {
    fn of(content_type: Option<&str>, data: &'a [u8]) -> Self {
        if data.is_empty() {
            return Self::None;
        }
        if content_type.is_none_or(media_type::is_json)
            && let Ok(json) = serde_json::from_slice(data)
        {
            return Self::Json(json);
        }
        if content_type.is_some_and(media_type::is_text)
            && let Ok(text) = std::str::from_utf8(data)
        {
            return Self::Text(text);
        }
        Self::Binary(data)
    }
}

impl Serialize for Envelope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        for (name, value) in &self.attributes {
            members.serialize_entry(name, value)?;
        }
        match self.data {
            DataMember::None => {}
            DataMember::Json(json) => members.serialize_entry("data", json)?,
            DataMember::Text(text) => members.serialize_entry("data", text)?,
            DataMember::Binary(bytes) => members.serialize_entry("data_base64", &base64::encode(bytes))?,
        }
        members.end()
    }
}
