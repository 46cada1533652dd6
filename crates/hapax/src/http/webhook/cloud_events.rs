//! The `source` and `id` of one CloudEvent, in both content modes. CloudEvents have no signatures.

use hapax_core::{Key, KeyError};
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::delivery::line;
use super::{WebhookFault, members};
use crate::header_value;

/// The key of the event: the same in binary and in structured mode.
///
/// Ids and sources may be long and in any script, so the key is derived from both.
pub(super) fn key(headers: &HeaderMap, body: &[u8]) -> Result<Key, WebhookFault> {
    let [source, id] = match content_mode(headers)? {
        ContentMode::Binary => [attribute(headers, "ce-source")?, attribute(headers, "ce-id")?],
        ContentMode::Structured => {
            let there = |name: &'static str| {
                let pointer = format!("/{name}").parse().expect("a name without escapes");
                match members::text_at(body, &pointer) {
                    Ok(Some(value)) => Ok(value),
                    Ok(None) => Err(WebhookFault::KeyMissing { place: name.into() }),
                    Err(members::AmbiguousMember) => {
                        Err(WebhookFault::KeyUnclear { place: "source` and `id".into() })
                    }
                }
            };
            [there("source")?, there("id")?]
        }
    };
    for (name, value) in [("source", &source), ("id", &id)] {
        if value.is_empty() {
            return Err(WebhookFault::KeyInvalid { place: name.into(), error: KeyError::Empty });
        }
    }
    // As a list: joined by a character, `a:b` and `c` would equal `a` and `b:c`.
    let pair = serde_json::Value::from(vec![source, id]);
    Key::derive("cloudevent", "receive", Some(&pair))
        .map_err(|error| WebhookFault::KeyInvalid { place: "id".into(), error })
}

enum ContentMode {
    Binary,
    Structured,
}

/// Only the content type decides the mode: headers may repeat attributes of a structured event.
fn content_mode(headers: &HeaderMap) -> Result<ContentMode, WebhookFault> {
    let unclear = || WebhookFault::KeyUnclear { place: "content-type".into() };
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let content_type = match (lines.next(), lines.next()) {
        (None, _) => return Ok(ContentMode::Binary),
        (Some(line), None) => line.as_bytes(),
        (Some(_), Some(_)) => return Err(unclear()),
    };
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let essence = essence.to_ascii_lowercase();
    match essence.strip_prefix(b"application/cloudevents") {
        None => Ok(ContentMode::Binary),
        Some(b"+json") => Ok(ContentMode::Structured),
        // A batch contains several events, and other formats are not supported.
        Some(_) => Err(unclear()),
    }
}

/// An attribute's header.
fn attribute(headers: &HeaderMap, name: &'static str) -> Result<String, WebhookFault> {
    let value = line(headers, name)?;
    header_value::decode(value).ok_or(WebhookFault::KeyUnclear { place: name.into() })
}
