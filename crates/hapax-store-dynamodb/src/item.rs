//! The format of a record as an item of the table.
//!
//! | attribute | type | content |
//! |---|---|---|
//! | `id` | S, the table's key | the record's id in hexadecimal |
//! | `layout` | N | version of this layout: 1 |
//! | `version` | B | 16 random bytes, different for every write |
//! | `head` | B | everything but the outcome, as `hapax_core::codec` writes it |
//! | `outcome` | B | the outcome, as `hapax_core::codec` writes it, if it fits |
//! | `chunks` | N | how many items hold the outcome, if it does not |
//! | `lease_ms` | N | the length of the lease |
//! | `state`, `expires_at_ms`, `outcome_bytes` | S, N, N | for operators, and for filters of scans |
//! | `ttl` | N | when DynamoDB may remove the item: two days after it expires, in seconds |
//!
//! A chunk has `id` (`RECORD/VERSION/NUMBER`), `chunk` (B), `of` (the record's id), `written_at_ms` and `ttl`.
//! An item that does not parse exactly is unreadable, never absent.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hapax_core::{Nonce, Record, RecordId, Recorded, State, Status, Timestamp, codec};
use serde_json::{Value, json};

/// The version of the layout that this crate writes.
pub const VERSION: u32 = 1;

/// The largest outcome that is kept in the record's own item. An item takes 400 KiB, of which a scope's names may have 64
/// and the rest of the head about one.
pub(crate) const INLINE_BYTES_MAX: usize = 320 << 10;

/// The size of a chunk: an item's limit, less some for its names.
pub(crate) const CHUNK_BYTES: usize = 384 << 10;

/// DynamoDB compares `ttl` with its own clock and is days late; this margin keeps it from being early.
const TTL_MARGIN: Duration = Duration::from_secs(48 * 3600);

/// Identifies one write of a record. No two writes have the same one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Version([u8; 16]);

impl Version {
    pub(crate) fn random() -> Self {
        Self(*Nonce::random().as_bytes())
    }

    pub(crate) fn text(self) -> String {
        hex(&self.0)
    }

    pub(crate) fn value(self) -> Value {
        binary(&self.0)
    }
}

/// Where a record's outcome is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum StoredOutcome {
    None,
    Inline(Bytes),
    Chunks(u32),
}

/// A record as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredRecord {
    pub(crate) version: Version,
    /// The head's bytes: part of the write condition, so that a record that was damaged since is not overwritten.
    pub(crate) head: Vec<u8>,
    /// The record, with an empty outcome if it has one.
    pub(crate) record: Record,
    pub(crate) outcome: StoredOutcome,
    /// The length of the lease.
    pub(crate) lease: Duration,
}

/// Why an item is not a readable record. Names attributes, never content.
pub(crate) type Unreadable = String;

impl StoredRecord {
    /// The record to store at `now`, and its outcome's bytes if they are stored in chunks.
    pub(crate) fn new(record: Record, version: Version, now: Timestamp) -> (Self, Option<Vec<u8>>) {
        let encoded = codec::encode(&record);
        let lease = match record.status {
            Status::InProgress { lease_until } => lease_until.since(now),
            _ => Duration::ZERO,
        };
        let (outcome, apart) = match encoded.outcome {
            None => (StoredOutcome::None, None),
            Some(bytes) if bytes.len() <= INLINE_BYTES_MAX => (StoredOutcome::Inline(bytes.into()), None),
            Some(bytes) => {
                let chunks = u32::try_from(bytes.len().div_ceil(CHUNK_BYTES)).unwrap_or(u32::MAX);
                (StoredOutcome::Chunks(chunks), Some(bytes))
            }
        };
        (Self { version, head: encoded.head, record, outcome, lease }, apart)
    }

    /// The item.
    pub(crate) fn item(&self) -> Value {
        let record = &self.record;
        let mut item = json!({
            "id": {"S": record.key.id.to_string()},
            "layout": number(VERSION),
            "version": self.version.value(),
            "head": binary(&self.head),
            "state": {"S": record.state().name()},
            "expires_at_ms": number(record.expires_at.as_millis()),
            "outcome_bytes": number(record.recorded().map_or(0, Recorded::len)),
            "ttl": ttl(record.expires_at),
        });
        if record.state() == State::InProgress {
            item["lease_ms"] = number(self.lease.as_millis());
        }
        match &self.outcome {
            StoredOutcome::None => {}
            StoredOutcome::Inline(bytes) => item["outcome"] = binary(bytes),
            StoredOutcome::Chunks(chunks) => item["chunks"] = number(chunks),
        }
        item
    }

    /// Parses the item of the record `id`. Its outcome is located and not yet decoded.
    pub(crate) fn read(id: &RecordId, item: &Value) -> Result<Self, Unreadable> {
        let mut stored = Self::outline(id, item)?;
        let has_outcome = stored.record.recorded().is_some();
        match (has_outcome, &stored.outcome, bytes(item, "outcome")) {
            (true, StoredOutcome::None, Some(bytes)) => stored.outcome = StoredOutcome::Inline(bytes.into()),
            (true, StoredOutcome::Chunks(_), None) | (false, StoredOutcome::None, None) => {}
            _ => return Err("the record's outcome is missing or inconsistent".to_owned()),
        }
        Ok(stored)
    }

    /// Parses the scanned attributes of the record `id`: they do not include an inline outcome.
    pub(crate) fn outline(id: &RecordId, item: &Value) -> Result<Self, Unreadable> {
        let missing = |name: &str| format!("the attribute {name} is missing or has another type");
        if unsigned(item, "layout") != Some(VERSION.into()) {
            return Err(format!("its layout is not version {VERSION}"));
        }
        if item["id"]["S"].as_str() != Some(&id.to_string()) {
            return Err("it belongs to another record".to_owned());
        }
        let head = bytes(item, "head").ok_or_else(|| missing("head"))?;
        let version = bytes(item, "version").and_then(|version| version.try_into().ok());
        let version = Version(version.ok_or_else(|| missing("version"))?);
        let record = codec::decode_head(id, &head).map_err(|error| error.to_string())?;
        let outcome = match item.get("chunks") {
            None => StoredOutcome::None,
            Some(_) => {
                let chunks = unsigned(item, "chunks").and_then(|chunks| u32::try_from(chunks).ok());
                StoredOutcome::Chunks(chunks.ok_or_else(|| missing("chunks"))?)
            }
        };
        let lease = match record.state() {
            State::InProgress => unsigned(item, "lease_ms").ok_or_else(|| missing("lease_ms"))?,
            _ => 0,
        };
        Ok(Self { version, head, record, outcome, lease: Duration::from_millis(lease) })
    }

    /// The record with its outcome decoded from these bytes.
    pub(crate) fn with_outcome(&self, bytes: &[u8]) -> Result<Record, Unreadable> {
        codec::decode(&self.record.key.id, &self.head, Some(bytes)).map_err(|error| error.to_string())
    }
}

/// When DynamoDB may remove a record that expires at `expires_at`.
pub(crate) fn ttl(expires_at: Timestamp) -> Value {
    number(expires_at.after(TTL_MARGIN).as_millis().div_ceil(1000))
}

/// A binary attribute.
pub(crate) fn binary(bytes: &[u8]) -> Value {
    json!({"B": BASE64.encode(bytes)})
}

/// A number attribute.
pub(crate) fn number(number: impl ToString) -> Value {
    json!({"N": number.to_string()})
}

/// The key of an item.
pub(crate) fn key(id: &str) -> Value {
    json!({"id": {"S": id}})
}

/// The bytes of an attribute.
pub(crate) fn bytes(item: &Value, name: &str) -> Option<Vec<u8>> {
    BASE64.decode(item[name]["B"].as_str()?).ok()
}

/// The number in an attribute, if it is a non-negative integer.
pub(crate) fn unsigned(item: &Value, name: &str) -> Option<u64> {
    item[name]["N"].as_str()?.parse().ok()
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
