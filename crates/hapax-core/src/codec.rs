//! Binary encoding of records: a version byte, a checksum, tagged fields.
//!
//! A record is two blobs. The *head* is small and changes with every step; the *outcome* is written once and may be
//! large. A store may keep them in two places: each has its own checksum, which covers the record id and, for an
//! outcome, the attempt.
//!
//! Bytes that do not decode exactly are [`Unreadable`], never absent.
//! The layout, version by version, is in `spec/record-format.md`.

mod wire;

use std::fmt;

use prost::Message;

use crate::key::RecordId;
use crate::record::{Class, Format, Nonce, Record, Recorded};

/// The layout version that this crate writes.
pub const VERSION: u8 = 1;

/// Version byte and checksum, before the fields.
const PREFIX_LENGTH: usize = 5;

/// An encoded record.
#[derive(Clone, PartialEq, Eq)]
pub struct Encoded {
    /// All fields but the outcome; about 120 bytes plus the names in the scope.
    pub head: Vec<u8>,
    /// The outcome, when the record has one.
    pub outcome: Option<Vec<u8>>,
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sizes only: an outcome may hold secrets.
        f.debug_struct("Encoded")
            .field("head_bytes", &self.head.len())
            .field("outcome_bytes", &self.outcome.as_ref().map(Vec::len))
            .finish()
    }
}

/// Encodes a record.
///
/// ```
/// # use hapax_core::{codec, transition, ClaimRequest, Fingerprint, Key, Nonce, Scope, ScopedKey, Timestamp};
/// # use std::time::Duration;
/// # let key = ScopedKey::new(Scope::new("POST /orders"), &Key::new("order-1")?);
/// # let ask = ClaimRequest { key, fingerprint: Fingerprint::empty(), nonce: Nonce::random(),
/// #     lease: Duration::from_secs(30), on_lapse: Default::default(), attempts_max: 3,
/// #     uncertain_retention: Duration::from_secs(86400) };
/// # let decision = transition::claim(None, &ask, Timestamp::from_millis(0));
/// # let transition::Change::Put(record) = decision.change else { unreachable!() };
/// let encoded = codec::encode(&record);
/// let again = codec::decode(&record.key.id, &encoded.head, encoded.outcome.as_deref())?;
/// assert_eq!(again, *record);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode(record: &Record) -> Encoded {
    Encoded {
        head: encode_head(record),
        outcome: record
            .recorded()
            .map(|recorded| encode_outcome(&record.key.id, record.fence.nonce, recorded)),
    }
}

/// Encodes all fields but the outcome.
pub fn encode_head(record: &Record) -> Vec<u8> {
    encode_blob(&wire::HeadMessage::from_record(record), BlobChecksum::head(&record.key.id))
}

/// Encodes the outcome of the attempt `nonce` of the record `id`.
pub fn encode_outcome(id: &RecordId, nonce: Nonce, recorded: &Recorded) -> Vec<u8> {
    encode_blob(&wire::OutcomeMessage::from_recorded(recorded), BlobChecksum::outcome(id, nonce))
}

/// Decodes the record `id`.
///
/// # Errors
/// [`Unreadable`] when the bytes are not exactly what [`encode`] wrote for this record, or have an unknown version. Such
/// a record is present: answer as if it were uncertain.
pub fn decode(id: &RecordId, head: &[u8], outcome: Option<&[u8]>) -> Result<Record, Unreadable> {
    let head: wire::HeadMessage = decode_blob(head, BlobChecksum::head(id), Part::Head)?;
    let nonce = head.nonce()?;
    let recorded = match (head.has_outcome, outcome) {
        (true, Some(bytes)) => Some(decode_outcome(id, nonce, bytes)?),
        (false, None) => None,
        (true, None) => return Err(Unreadable::OutcomeMissing),
        (false, Some(_)) => return Err(Unreadable::OutcomeForeign),
    };
    head.into_record(*id, recorded)
}

/// Decodes the outcome of the attempt `nonce` of the record `id`, for stores with their own encoding of heads.
///
/// # Errors
/// [`Unreadable`] as for [`decode`], about the outcome.
pub fn decode_outcome(id: &RecordId, nonce: Nonce, outcome: &[u8]) -> Result<Recorded, Unreadable> {
    let outcome: wire::OutcomeMessage =
        decode_blob(outcome, BlobChecksum::outcome(id, nonce), Part::Outcome)?;
    outcome.into_recorded()
}

/// Decodes the record `id` from its head alone, for callers that need its times and not its outcome.
///
/// If the record has an outcome, the returned one is empty: never store it and never replay it.
///
/// # Errors
/// [`Unreadable`] as for [`decode`], about the head.
///
/// ```
/// # use hapax_core::{codec, transition, ClaimRequest, Class, Fingerprint, Format, Key, Nonce, Recorded, Scope,
/// #     ScopedKey, State, Timestamp};
/// # use std::time::Duration;
/// # let key = ScopedKey::new(Scope::new("POST /orders"), &Key::new("order-1")?);
/// # let ask = ClaimRequest { key, fingerprint: Fingerprint::empty(), nonce: Nonce::random(),
/// #     lease: Duration::from_secs(30), on_lapse: Default::default(), attempts_max: 3,
/// #     uncertain_retention: Duration::from_secs(86400) };
/// # let decision = transition::claim(None, &ask, Timestamp::from_millis(0));
/// # let transition::Change::Put(mut record) = decision.change else { unreachable!() };
/// # for (class, state) in [(Class::Success, State::Completed), (Class::Error, State::Failed)] {
/// # record.status = hapax_core::Status::Pinned { recorded: Recorded::new(class, Format::FUNCTION, "large") };
/// let head = codec::decode_head(&record.key.id, &codec::encode_head(&record))?;
/// assert_eq!((head.state(), head.expires_at), (state, record.expires_at));
/// assert!(head.recorded().is_some_and(Recorded::is_empty));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decode_head(id: &RecordId, head: &[u8]) -> Result<Record, Unreadable> {
    let head: wire::HeadMessage = decode_blob(head, BlobChecksum::head(id), Part::Head)?;
    if !head.has_outcome {
        return head.into_record(*id, None);
    }
    // The state determines the class of its outcome; the other class is refused.
    let empty = |class| Some(Recorded::new(class, Format::OPERATOR, ""));
    head.clone()
        .into_record(*id, empty(Class::Success))
        .or_else(|_| head.into_record(*id, empty(Class::Error)))
}

/// One of a record's two blobs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// All fields but the outcome.
    Head,
    /// The outcome.
    Outcome,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "head",
            Self::Outcome => "outcome",
        })
    }
}

/// Why bytes do not decode to a record. It names blobs and fields, never content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Unreadable {
    /// Too short for a version and a checksum.
    Short(Part),
    /// Unknown layout version.
    Version {
        /// The blob.
        part: Part,
        /// The version byte.
        found: u8,
    },
    /// Damaged, or taken from another record or another attempt.
    Checksum(Part),
    /// Valid checksum and malformed fields: not written by this codec.
    Malformed(Part),
    /// A field holds an unknown value.
    Field {
        /// The blob.
        part: Part,
        /// The field's name in `spec/record-format.md`.
        name: &'static str,
    },
    /// The head has an outcome and its blob is missing.
    OutcomeMissing,
    /// There is an outcome blob and the head has no outcome.
    OutcomeForeign,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(part) => write!(f, "the record's {part} is cut short"),
            Self::Version { part, found } => {
                write!(f, "the record's {part} has version {found} and this program reads version {VERSION}")
            }
            Self::Checksum(part) => {
                write!(f, "the record's {part} is damaged or belongs to another record or attempt")
            }
            Self::Malformed(part) => {
                write!(f, "the record's {part} has a valid checksum and malformed fields")
            }
            Self::Field { part, name } => {
                write!(f, "the field {name} of the record's {part} has an unknown value")
            }
            Self::OutcomeMissing => f.write_str("the record's outcome is missing"),
            Self::OutcomeForeign => f.write_str("there is an outcome and the record has none"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// A checksum seeded with the identity of the blob, so that a blob of another record or attempt does not verify.
struct BlobChecksum(crc32fast::Hasher);

impl BlobChecksum {
    fn head(id: &RecordId) -> Self {
        Self::of(b'h', id)
    }

    fn outcome(id: &RecordId, nonce: Nonce) -> Self {
        let mut checksum = Self::of(b'o', id);
        checksum.0.update(nonce.as_bytes());
        checksum
    }

    fn of(part: u8, id: &RecordId) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&[part, VERSION]);
        hasher.update(id.as_bytes());
        Self(hasher)
    }

    fn finish(mut self, fields: &[u8]) -> [u8; 4] {
        self.0.update(fields);
        self.0.finalize().to_be_bytes()
    }
}

fn encode_blob(message: &impl Message, checksum: BlobChecksum) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX_LENGTH + message.encoded_len());
    bytes.extend_from_slice(&[VERSION, 0, 0, 0, 0]);
    message.encode_raw(&mut bytes);
    let checksum = checksum.finish(&bytes[PREFIX_LENGTH..]);
    bytes[1..PREFIX_LENGTH].copy_from_slice(&checksum);
    bytes
}

fn decode_blob<M: Message + Default>(
    bytes: &[u8],
    checksum: BlobChecksum,
    part: Part,
) -> Result<M, Unreadable> {
    match bytes.first() {
        Some(&VERSION) => {}
        Some(&found) => return Err(Unreadable::Version { part, found }),
        None => return Err(Unreadable::Short(part)),
    }
    let Some((prefix, fields)) = bytes.split_at_checked(PREFIX_LENGTH) else {
        return Err(Unreadable::Short(part));
    };
    if prefix[1..] != checksum.finish(fields) {
        return Err(Unreadable::Checksum(part));
    }
    M::decode(fields).map_err(|_| Unreadable::Malformed(part))
}
