//! Conversion between responses and records: what is stored of a response, and how a replay is made.
//!
//! The payload of a record is the unchanged body. The metadata holds the rest, encoded by `capture/wire.rs`.
//! `capture/fields.rs` decides which fields are kept; this file joins them. Whether a response is recorded is decided
//! elsewhere, and the server that sends the response adds `Date`.

mod coding;
mod cors;
mod fields;
pub(super) mod wire;

use bytes::Bytes;
use hapax_core::{Format, Recorded};
use http::header::ORIGIN;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::body::Trailers;
use super::canonical::header;
use super::classify;
use fields::ConnectionFields;
use wire::{Damaged, FieldSection, HeadReader, HeadWriter};

/// Which fields of a response are stored, and how a replay is marked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReplayRules {
    /// The field that marks a replay.
    pub(crate) marker: HeaderName,
    /// Whether first responses carry the marker too, with `false`.
    pub(crate) mark_first: bool,
    /// The request field that is echoed in every response: the one that holds the key.
    pub(crate) echo_key: Option<HeaderName>,
    /// Whether cookies are replayed.
    pub(crate) set_cookie: bool,
    /// Fields that are not replayed, in addition to those that never are.
    pub(crate) drop: Vec<HeaderName>,
    /// The only fields that are replayed, in addition to the essential ones: type, coding, `Location` and gRPC's own.
    pub(crate) only: Option<Vec<HeaderName>>,
}

impl Default for ReplayRules {
    fn default() -> Self {
        Self {
            marker: HeaderName::from_static("x-idempotent-replayed"),
            mark_first: false,
            echo_key: None,
            set_cookie: false,
            drop: Vec::new(),
            only: None,
        }
    }
}

/// A response from the store, ready to be sent. The connection adds the framing.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Trailers,
}

/// Why an outcome has no response to replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NotReplayable {
    /// The response was too large, or a stream.
    #[error("the response was not recorded")]
    NotKept,
    /// The record was written by another surface: a function, or an operator who settled it.
    #[error("the recorded result is not an HTTP response")]
    Foreign,
    /// The bytes are not a valid response, or have an unknown version.
    #[error("the recorded response cannot be read")]
    Damaged,
}

impl From<Damaged> for NotReplayable {
    fn from(_: Damaged) -> Self {
        Self::Damaged
    }
}

/// The outcome to store for this response.
pub(crate) fn record(
    rules: &ReplayRules,
    request_origin: Option<&HeaderValue>,
    parts: &Parts,
    body: &[u8],
    trailers: Option<&HeaderMap>,
) -> Recorded {
    let named = ConnectionFields::of(&parts.headers);
    // Only a response with CORS fields depends on the request's origin.
    let origin = request_origin.filter(|_| parts.headers.keys().any(fields::is_cors));
    let body = if has_content(parts.status) { body } else { &[] };
    let mut writer = HeadWriter::new(parts.status, origin.map_or(b"", HeaderValue::as_bytes));
    for (name, value) in &parts.headers {
        if rules.keeps(name) && !named.contains(name) {
            writer.field(FieldSection::Header, name, value);
        }
    }
    for (name, value) in trailers.into_iter().flatten() {
        if rules.keeps_trailer(name) {
            writer.field(FieldSection::Trailer, name, value);
        }
    }
    let (meta, payload) = writer.finish(body);
    Recorded::new(classify::class(parts.status), Format::HTTP, payload).with_meta(meta)
}

/// The response for this retry, made from the recorded one.
///
/// The rules are applied again: a field that a route no longer replays is omitted, although it was stored. The outcome
/// of a record settled by an operator is not an HTTP response and is not replayed as one.
pub(crate) fn replay(
    rules: &ReplayRules,
    retry: &HeaderMap,
    recorded: Recorded,
) -> Result<Replayed, NotReplayable> {
    match recorded.format {
        Format::HTTP => {}
        Format::NOT_KEPT => return Err(NotReplayable::NotKept),
        _ => return Err(NotReplayable::Foreign),
    }
    let reader = HeadReader::new(&recorded.meta)?;
    let status = reader.status();
    let origin = header::first(retry, &ORIGIN);
    let same_origin = reader.origin() == origin.map_or(b"".as_slice(), HeaderValue::as_bytes);
    let mut headers = HeaderMap::with_capacity(FIELDS_USUAL);
    let mut trailers: Trailers = None;
    for field in reader {
        let (kind, name, value) = field?;
        let map = match kind {
            FieldSection::Header if rules.keeps(&name) && (same_origin || !fields::is_cors(&name)) => {
                &mut headers
            }
            FieldSection::Trailer if rules.keeps_trailer(&name) => trailers.get_or_insert_default(),
            FieldSection::Header | FieldSection::Trailer => continue,
        };
        map.try_append(name, value).map_err(|_| NotReplayable::Damaged)?;
    }
    let body = if has_content(status) { recorded.payload } else { Bytes::new() };
    let body = coding::acceptable_body(retry, &mut headers, body);
    rules.mark("true", &mut headers);
    rules.echo(retry, &mut headers);
    Ok(Replayed { status, headers, body, trailers })
}

/// Capacity for the fields of most responses and the layer's own, so that the map grows only for unusual ones.
const FIELDS_USUAL: usize = 6;

impl ReplayRules {
    /// Changes the head of a first response before it is sent: removes `Idempotency-Outcome` and any markers of the
    /// origin, and adds the layer's own.
    pub(crate) fn prepare_first(&self, request: &HeaderMap, headers: &mut HeaderMap) {
        classify::remove_override(headers);
        headers.remove(&self.marker);
        if self.mark_first {
            self.mark("false", headers);
        }
        self.echo(request, headers);
    }

    fn mark(&self, replayed: &'static str, headers: &mut HeaderMap) {
        set(headers, &self.marker, HeaderValue::from_static(replayed));
        cors::expose(&self.marker, headers);
    }

    fn echo(&self, request: &HeaderMap, headers: &mut HeaderMap) {
        if let Some(name) = &self.echo_key
            && let Some(key) = request.get(name)
        {
            set(headers, name, key.clone());
        }
    }
}

/// Omits the field if the map is full, instead of panicking.
fn set(headers: &mut HeaderMap, name: &HeaderName, value: HeaderValue) {
    let _full = headers.try_insert(name, value);
}

/// Whether a response with this status may have content (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
pub(crate) fn has_content(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
}

#[cfg(test)]
mod tests;
