//! Records as JSON documents. Names are those of the glossary; keys are not included.
//!
//! The command line prints these views, the admin API returns them, and its client parses them.

mod names;

use std::time::Duration;

use hapax::http::{Answer, is_http_operation};
use hapax_core::{Format, Page, Reason, Record, Recorded, State, Status, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

pub use self::names::{ClassView, ReasonView, StateView};
use crate::records::response::{Fields, fields};
use crate::text::printable;
use crate::time::{relative, rfc3339};

/// The digits of an id on a terminal: the hash of the key, and enough of the hash of the scope to distinguish scopes.
const ID_DIGITS_SHORT: usize = 24;

/// Bytes of a version: enough that the versions of a record do not collide.
const VERSION_BYTES: usize = 16;

/// Whether the stored result is included. It may be confidential, so it is included only on request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// With the stored result.
    Shown,
    /// Without the stored result.
    Hidden,
}

/// A record in JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Record)]
pub struct RecordView {
    /// 64 hexadecimal digits, of which the first 16 are the key's hash.
    pub id: String,
    /// Identifies this state of the record: a change with another version is refused.
    pub version: String,
    /// The scope within which the key is unique.
    pub scope: ScopeView,
    /// The state of the record.
    pub state: StateView,
    /// Why it is unknown whether the operation happened.
    #[schema(required)]
    pub reason: Option<ReasonView>,
    /// The number of the last attempt.
    pub attempt: u32,
    /// When the first attempt claimed the key, in RFC 3339.
    #[schema(required)]
    pub created_at: Option<String>,
    /// The same in milliseconds since 1970.
    pub created_at_ms: u64,
    /// When the state last changed.
    #[schema(required)]
    pub updated_at: Option<String>,
    /// The same in milliseconds since 1970.
    pub updated_at_ms: u64,
    /// The end of the lease of the claim.
    #[schema(required)]
    pub lease_until: Option<String>,
    /// The same in milliseconds since 1970.
    #[schema(required)]
    pub lease_until_ms: Option<u64>,
    /// When a sweep may remove the record; null if never.
    #[schema(required)]
    pub expires_at: Option<String>,
    /// The same in milliseconds since 1970.
    pub expires_at_ms: u64,
    /// The outcome that retries receive.
    #[schema(required)]
    pub recorded: Option<RecordedView>,
}

/// The scope within which a key is unique.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Scope)]
pub struct ScopeView {
    /// Separates deployments that share a store.
    pub namespace: String,
    /// Method and path, or the name of a function or consumer.
    pub operation: String,
    /// The hash of the principal.
    #[schema(required)]
    pub principal: Option<String>,
}

/// A recorded outcome, with its content only on request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Recorded)]
pub struct RecordedView {
    /// Success or error.
    pub class: ClassView,
    /// The format: `http`, `function`, `operator` or `not_kept`.
    pub format: String,
    /// The size of the metadata.
    pub meta_bytes: usize,
    /// The size of the payload.
    pub payload_bytes: usize,
    /// The status of an HTTP response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The header fields of an HTTP response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Fields>,
    /// The metadata in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_hex: Option<String>,
    /// The payload, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The payload in hexadecimal digits, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_hex: Option<String>,
}

/// One record, with the time of the store's clock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RecordDocument)]
pub struct Document {
    /// The change that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<String>,
    /// The record.
    pub record: RecordView,
    /// The store's clock, in milliseconds since 1970.
    pub now_ms: u64,
    /// The default retention of a result that settles the record; only of an uncertain record at a sidecar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9007199254740991_u64)]
    pub settle_retention_ms: Option<u64>,
}

/// One page of a listing, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = RecordPage)]
pub struct PageView {
    /// The records, without stored results.
    pub records: Vec<RecordView>,
    /// Ids of records that exist and cannot be decoded.
    pub unreadable: Vec<String>,
    /// The cursor of the next page.
    #[schema(required)]
    pub next: Option<String>,
    /// The store's clock, in milliseconds since 1970.
    pub now_ms: u64,
}

impl Document {
    /// The document of a record at the time `now` of the store's clock.
    pub fn new(record: &Record, now: Timestamp, payload: Payload) -> Self {
        let record = RecordView::new(record, now, payload);
        Self { done: None, record, now_ms: now.as_millis(), settle_retention_ms: None }
    }

    /// The store's clock.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms)
    }

    /// The default retention of a result that settles the record, if it is known.
    pub fn settle_retention(&self) -> Option<Duration> {
        self.settle_retention_ms.map(Duration::from_millis)
    }
}

impl From<Page> for PageView {
    fn from(page: Page) -> Self {
        let view = |record| RecordView::new(record, page.now, Payload::Hidden);
        Self {
            records: page.records.iter().map(view).collect(),
            unreadable: page.unreadable.iter().map(ToString::to_string).collect(),
            next: page.next,
            now_ms: page.now.as_millis(),
        }
    }
}

impl PageView {
    /// Appends the next page.
    pub fn append(&mut self, following: Self) {
        self.records.extend(following.records);
        self.unreadable.extend(following.unreadable);
        (self.next, self.now_ms) = (following.next, following.now_ms);
    }

    /// The store's clock.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms)
    }
}

impl RecordView {
    /// The view of a record at the time `now` of the store's clock.
    pub fn new(record: &Record, now: Timestamp, payload: Payload) -> Self {
        let scope = &record.key.scope;
        let lease_until = match record.status {
            Status::InProgress { lease_until } => Some(lease_until),
            _ => None,
        };
        Self {
            id: record.key.id.to_string(),
            version: version(record),
            scope: ScopeView {
                namespace: scope.namespace().to_owned(),
                operation: scope.operation().to_owned(),
                principal: scope.principal_hash().map(|hash| hex(hash.as_bytes())),
            },
            state: record.state_at(now).into(),
            reason: reason_at(record, now).map(ReasonView::from),
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

    /// The state.
    pub fn state(&self) -> State {
        self.state.into()
    }

    /// When the state last changed.
    pub fn updated(&self) -> Timestamp {
        Timestamp::from_millis(self.updated_at_ms)
    }

    /// When a sweep may remove the record.
    pub fn expires(&self) -> Timestamp {
        Timestamp::from_millis(self.expires_at_ms)
    }

    /// Whether the operation looks like that of an HTTP request, whose retries need an HTTP response.
    pub fn is_http(&self) -> bool {
        is_http_operation(&self.scope.operation)
    }

    /// The state in words: `uncertain (lapsed)`.
    pub fn state_words(&self) -> String {
        match (self.state(), self.reason) {
            (State::Uncertain, Some(reason)) => format!("uncertain ({})", Reason::from(reason).name()),
            (state, _) => state.name().to_owned(),
        }
    }

    /// A table row under [`ROW_HEADER`]. On a terminal the id is shortened.
    pub fn row(&self, now: Timestamp, terminal: bool) -> Vec<String> {
        let digits = if terminal { ID_DIGITS_SHORT } else { self.id.len() };
        vec![
            self.id.chars().take(digits).collect(),
            self.state_words(),
            self.attempt.to_string(),
            relative(self.updated(), now),
            relative(self.expires(), now),
            or_dash(&self.scope.namespace),
            or_dash(&self.scope.operation),
        ]
    }
}

impl RecordedView {
    fn new(recorded: &Recorded, payload: Payload) -> Self {
        let shown = (payload == Payload::Shown).then_some(recorded);
        let text = std::str::from_utf8(&recorded.payload).ok();
        let answer = Answer::of(recorded);
        Self {
            status: answer.as_ref().map(|answer| answer.status.as_u16()),
            headers: shown.and(answer).map(|answer| fields(&answer.headers)),
            class: recorded.class.into(),
            format: format_name(recorded.format),
            meta_bytes: recorded.meta.len(),
            payload_bytes: recorded.payload.len(),
            meta_hex: shown.filter(|it| !it.meta.is_empty()).map(|it| hex(&it.meta)),
            payload: shown.and(text).map(str::to_owned),
            payload_hex: shown.filter(|_| text.is_none()).map(|it| hex(&it.payload)),
        }
    }

    /// A summary of the outcome.
    pub fn summary(&self) -> String {
        let class = self.class.name();
        if self.format == format_name(Format::NOT_KEPT) {
            return format!("{class}, what was answered was not kept");
        }
        let status = self.status.map_or_else(String::new, |status| format!(" {status}"));
        format!("{class}, {}{status}, {} bytes", self.format, self.meta_bytes + self.payload_bytes)
    }

    /// The head of an HTTP response, if it is included.
    pub fn head(&self) -> Option<String> {
        let (status, headers) = (self.status?, self.headers.as_ref()?);
        let lines = headers
            .iter()
            .flat_map(|(name, lines)| lines.iter().map(move |line| format!("{name}: {}", printable(line))));
        Some(std::iter::once(status.to_string()).chain(lines).collect::<Vec<_>>().join("\n"))
    }

    /// The metadata in hexadecimal digits, if the format is unknown.
    pub fn unread_meta(&self) -> Option<&str> {
        self.meta_hex.as_deref().filter(|_| self.status.is_none())
    }
}

/// The header of [`RecordView::row`].
pub const ROW_HEADER: [&str; 7] = ["id", "state", "attempt", "updated", "expires", "namespace", "operation"];

/// The version of a record, which a renewal of the lease does not change. It is a digest, because the nonce in it would
/// permit writes in the name of the attempt.
pub fn version(record: &Record) -> String {
    let mut digest = Sha256::new();
    digest.update(record.fence.nonce.as_bytes());
    digest.update(record.updated_at.as_millis().to_be_bytes());
    digest.update(record.state().name());
    hex(&digest.finalize()[..VERSION_BYTES])
}

/// The reason of uncertainty. A lapsed claim is uncertain before a store has written that.
fn reason_at(record: &Record, now: Timestamp) -> Option<Reason> {
    match record.status {
        Status::Uncertain { reason } => Some(reason),
        _ if record.is_lapsed(now) => Some(Reason::Lapsed),
        _ => None,
    }
}

/// The text made safe for a terminal, or a dash if it is empty.
pub fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { printable(text) }
}

/// The name of a payload format.
pub fn format_name(format: Format) -> String {
    match format {
        Format::FUNCTION => "function".to_owned(),
        Format::HTTP => "http".to_owned(),
        Format::OPERATOR => "operator".to_owned(),
        Format::NOT_KEPT => "not_kept".to_owned(),
        Format(other) => format!("format {other}"),
    }
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
