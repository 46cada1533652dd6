//! A record as an item of the table, and back.
//!
//! | attribute | type | content |
//! |---|---|---|
//! | `id` | S, the table's key | the record's id in hexadecimal |
//! | `layout` | N | version of this layout: 1 |
//! | `version` | B | 16 random bytes, others with every write |
//! | `head` | B | everything but the outcome, as `hapax_core::codec` writes it |
//! | `outcome` | B | the outcome, as `hapax_core::codec` writes it, where it fits |
//! | `chunks` | N | how many items hold the outcome, where it does not |
//! | `lease_ms` | N | how long the claim is believed without renewal |
//! | `state`, `expires_at_ms`, `outcome_bytes` | S, N, N | for people, and for filters of scans |
//! | `ttl` | N | when DynamoDB may remove the item: two days after it expires, in seconds |
//!
//! A chunk has `id` (`RECORD/VERSION/NUMBER`), `chunk` (B), `of` (the record's id), `written_at_ms` and `ttl`.
//! Whatever does not read back exactly is unreadable, never absent.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hapax_core::{Nonce, Record, RecordId, Recorded, State, Status, Timestamp, codec};
use serde_json::{Value, json};

use crate::sign::hex;

/// The version of the layout that this crate writes.
pub const VERSION: u32 = 1;

/// An outcome up to this size is kept in the record's own item. An item takes 400 KiB, of which the names in a scope
/// may have 64 and the rest of the head about one.
pub(crate) const INLINE_BYTES_MAX: usize = 320 << 10;

/// How large a chunk is: what an item takes, less some for its names.
pub(crate) const CHUNK_BYTES: usize = 384 << 10;

/// DynamoDB compares `ttl` with a clock that is not ours and is days late; this keeps it from being early.
const TTL_MARGIN: Duration = Duration::from_secs(48 * 3600);

/// Names one write of a record. No two writes have the same one.
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

/// Where a record's outcome is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    None,
    Here(Bytes),
    Chunks(u32),
}

/// A record as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) version: Version,
    /// The head's bytes: a write names them, so that nobody writes over what was damaged meanwhile.
    pub(crate) head: Vec<u8>,
    /// The record, with an empty outcome where it has one.
    pub(crate) record: Record,
    pub(crate) outcome: Outcome,
    /// How long a claim is believed without renewal.
    pub(crate) lease: Duration,
}

/// Why an item is not a record that this version can read. It names parts, never content.
pub(crate) type Unreadable = String;

impl Held {
    /// How the record is to be stored at `now`, with its outcome's bytes where it has one.
    pub(crate) fn new(record: Record, version: Version, now: Timestamp) -> (Self, Option<Vec<u8>>) {
        let encoded = codec::encode(&record);
        let lease = match record.status {
            Status::InProgress { lease_until } => lease_until.since(now),
            _ => Duration::ZERO,
        };
        let (outcome, apart) = match encoded.outcome {
            None => (Outcome::None, None),
            Some(bytes) if bytes.len() <= INLINE_BYTES_MAX => (Outcome::Here(bytes.into()), None),
            Some(bytes) => {
                let chunks = u32::try_from(bytes.len().div_ceil(CHUNK_BYTES)).unwrap_or(u32::MAX);
                (Outcome::Chunks(chunks), Some(bytes))
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
            Outcome::None => {}
            Outcome::Here(bytes) => item["outcome"] = binary(bytes),
            Outcome::Chunks(chunks) => item["chunks"] = number(chunks),
        }
        item
    }

    /// Reads the item of the record `id`. An outcome is looked for and not yet read.
    pub(crate) fn read(id: &RecordId, item: &Value) -> Result<Self, Unreadable> {
        let mut held = Self::outline(id, item)?;
        let has_outcome = held.record.recorded().is_some();
        match (has_outcome, &held.outcome, bytes(item, "outcome")) {
            (true, Outcome::None, Some(bytes)) => held.outcome = Outcome::Here(bytes.into()),
            (true, Outcome::Chunks(_), None) | (false, Outcome::None, None) => {}
            _ => return Err("the record's outcome is missing or not its own".to_owned()),
        }
        Ok(held)
    }

    /// Reads what a scan shows of the item of the record `id`: an outcome that stands in the item is not told of.
    pub(crate) fn outline(id: &RecordId, item: &Value) -> Result<Self, Unreadable> {
        let missing = |name: &str| format!("the attribute {name} is missing or of another type");
        if unsigned(item, "layout") != Some(VERSION.into()) {
            return Err(format!("its layout is not version {VERSION}"));
        }
        if item["id"]["S"].as_str() != Some(&id.to_string()) {
            return Err("it is the item of another record".to_owned());
        }
        let head = bytes(item, "head").ok_or_else(|| missing("head"))?;
        let version = bytes(item, "version").and_then(|version| version.try_into().ok());
        let version = Version(version.ok_or_else(|| missing("version"))?);
        let record = codec::decode_head(id, &head).map_err(|error| error.to_string())?;
        let outcome = match item.get("chunks") {
            None => Outcome::None,
            Some(_) => {
                let chunks = unsigned(item, "chunks").and_then(|chunks| u32::try_from(chunks).ok());
                Outcome::Chunks(chunks.ok_or_else(|| missing("chunks"))?)
            }
        };
        let lease = match record.state() {
            State::InProgress => unsigned(item, "lease_ms").ok_or_else(|| missing("lease_ms"))?,
            _ => 0,
        };
        Ok(Self { version, head, record, outcome, lease: Duration::from_millis(lease) })
    }

    /// The record with the outcome that these are the bytes of.
    pub(crate) fn with_outcome(&self, bytes: &[u8]) -> Result<Record, Unreadable> {
        codec::decode(&self.record.key.id, &self.head, Some(bytes)).map_err(|error| error.to_string())
    }
}

/// When DynamoDB may remove what expires at `expires_at`.
pub(crate) fn ttl(expires_at: Timestamp) -> Value {
    number(expires_at.after(TTL_MARGIN).as_millis().div_ceil(1000))
}

/// An attribute that holds bytes.
pub(crate) fn binary(bytes: &[u8]) -> Value {
    json!({"B": BASE64.encode(bytes)})
}

/// An attribute that holds a number.
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

/// The number in an attribute, where it is a whole and positive one.
pub(crate) fn unsigned(item: &Value, name: &str) -> Option<u64> {
    item[name]["N"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
