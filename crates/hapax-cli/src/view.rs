//! A record as people and programs see it. Names are those of the glossary; a key is never among them.

use hapax_core::{Class, Format, Reason, Record, RecordId, Recorded, State, Status, Timestamp};
use serde::Serialize;

use crate::output::printable;
use crate::time::{relative, rfc3339};

/// How many digits of an id a terminal shows: the key's hash and enough of the scope's to tell scopes apart.
const ID_DIGITS_SHORT: usize = 24;

/// Whether the stored result is shown. It may be confidential, so it is shown only when asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Payload {
    Shown,
    Hidden,
}

/// A record in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct RecordView {
    id: String,
    scope: ScopeView,
    state: &'static str,
    reason: Option<&'static str>,
    attempt: u32,
    created_at: Option<String>,
    created_at_ms: u64,
    updated_at: Option<String>,
    updated_at_ms: u64,
    lease_until: Option<String>,
    lease_until_ms: Option<u64>,
    expires_at: Option<String>,
    expires_at_ms: u64,
    recorded: Option<RecordedView>,
}

#[derive(Debug, Serialize)]
struct ScopeView {
    namespace: String,
    operation: String,
    principal: Option<String>,
}

#[derive(Debug, Serialize)]
struct RecordedView {
    class: &'static str,
    format: String,
    meta_bytes: usize,
    payload_bytes: usize,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    content: Option<ContentView>,
}

/// Text where it is text; digits where it is not.
#[derive(Debug, Serialize)]
struct ContentView {
    #[serde(skip_serializing_if = "Option::is_none")]
    meta_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_hex: Option<String>,
}

impl RecordView {
    pub(crate) fn new(record: &Record, now: Timestamp, payload: Payload) -> Self {
        let scope = &record.key.scope;
        let lease_until = match record.status {
            Status::InProgress { lease_until } => Some(lease_until),
            _ => None,
        };
        Self {
            id: record.key.id.to_string(),
            scope: ScopeView {
                namespace: scope.namespace().to_owned(),
                operation: scope.operation().to_owned(),
                principal: scope.principal_hash().map(|hash| hex(hash.as_bytes())),
            },
            state: record.state_at(now).name(),
            reason: reason_at(record, now).map(Reason::name),
            attempt: record.fence.attempt,
            created_at: rfc3339(record.created_at),
            created_at_ms: record.created_at.as_millis(),
            updated_at: rfc3339(record.updated_at),
            updated_at_ms: record.updated_at.as_millis(),
            lease_until: lease_until.and_then(rfc3339),
            lease_until_ms: lease_until.map(Timestamp::as_millis),
            expires_at: rfc3339(record.expires_at),
            expires_at_ms: record.expires_at.as_millis(),
            recorded: record.recorded().map(|recorded| RecordedView::new(recorded, payload)),
        }
    }
}

impl RecordedView {
    fn new(recorded: &Recorded, payload: Payload) -> Self {
        Self {
            class: class_name(recorded.class),
            format: format_name(recorded.format),
            meta_bytes: recorded.meta.len(),
            payload_bytes: recorded.payload.len(),
            content: (payload == Payload::Shown).then(|| ContentView::new(recorded)),
        }
    }
}

impl ContentView {
    fn new(recorded: &Recorded) -> Self {
        let text = std::str::from_utf8(&recorded.payload).ok();
        Self {
            meta_hex: (!recorded.meta.is_empty()).then(|| hex(&recorded.meta)),
            payload: text.map(str::to_owned),
            payload_hex: text.is_none().then(|| hex(&recorded.payload)),
        }
    }
}

/// Why nobody knows; a lapsed claim counts although nobody has written that down yet.
pub(crate) fn reason_at(record: &Record, now: Timestamp) -> Option<Reason> {
    match record.status {
        Status::Uncertain { reason } => Some(reason),
        _ if record.is_lapsed(now) => Some(Reason::Lapsed),
        _ => None,
    }
}

/// The state in words: `uncertain (lapsed)`.
pub(crate) fn state_words(record: &Record, now: Timestamp) -> String {
    match (record.state_at(now), reason_at(record, now)) {
        (State::Uncertain, Some(reason)) => format!("uncertain ({})", reason.name()),
        (state, _) => state.name().to_owned(),
    }
}

/// The header of [`row`].
pub(crate) const ROW_HEADER: [&str; 7] =
    ["id", "state", "attempt", "updated", "expires", "namespace", "operation"];

/// A record as one row of a table. A terminal gets the start of the id, a file or a program all of it.
pub(crate) fn row(record: &Record, now: Timestamp, terminal: bool) -> Vec<String> {
    let scope = &record.key.scope;
    vec![
        shown_id(&record.key.id, terminal),
        state_words(record, now),
        record.fence.attempt.to_string(),
        relative(record.updated_at, now),
        relative(record.expires_at, now),
        or_dash(scope.namespace()),
        or_dash(scope.operation()),
    ]
}

pub(crate) fn shown_id(id: &RecordId, terminal: bool) -> String {
    let mut id = id.to_string();
    if terminal {
        id.truncate(ID_DIGITS_SHORT);
    }
    id
}

pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { printable(text) }
}

pub(crate) const fn class_name(class: Class) -> &'static str {
    match class {
        Class::Success => "success",
        Class::Error => "error",
    }
}

pub(crate) fn format_name(format: Format) -> String {
    match format {
        Format::FUNCTION => "function".to_owned(),
        Format::HTTP => "http".to_owned(),
        Format::OPERATOR => "operator".to_owned(),
        Format::NOT_KEPT => "not_kept".to_owned(),
        Format(other) => format!("format {other}"),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
