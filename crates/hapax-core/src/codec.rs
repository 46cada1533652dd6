//! Records as bytes: version byte first, then a checksum, then tagged fields.
//!
//! A record is two blobs. The *head* is small and changes with every step; the *outcome* is written once, when
//! there is one, and may be large. A store may keep them in two places: each is checked on its own, and an
//! outcome says which record and which attempt it belongs to.
//!
//! What does not read back exactly is [`Unreadable`]. There is no way to get "absent" out of this file.
//! The layout, version by version, is in `spec/record-format.md`.

mod wire;

use std::fmt;

use prost::Message;

use crate::key::RecordId;
use crate::record::{Class, Format, Nonce, Record, Recorded};

/// The version of the layout that this crate writes.
pub const VERSION: u8 = 1;

/// Version byte and checksum, before the fields.
const PREFIX_LENGTH: usize = 5;

/// A record as bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Everything but the outcome; about 120 bytes and the names in the scope.
    pub head: Vec<u8>,
    /// The outcome, when the record has one.
    pub outcome: Option<Vec<u8>>,
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sizes only: an outcome may hold what must not reach a log.
        f.debug_struct("Encoded")
            .field("head_bytes", &self.head.len())
            .field("outcome_bytes", &self.outcome.as_ref().map(Vec::len))
            .finish()
    }
}

/// Writes a record down.
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

/// Writes everything but the outcome down.
pub fn encode_head(record: &Record) -> Vec<u8> {
    seal(&wire::Head::from_record(record), Seal::head(&record.key.id))
}

/// Writes down the outcome of the attempt `nonce` of the record `id`.
pub fn encode_outcome(id: &RecordId, nonce: Nonce, recorded: &Recorded) -> Vec<u8> {
    seal(&wire::Outcome::from_recorded(recorded), Seal::outcome(id, nonce))
}

/// Reads the record `id` back.
///
/// # Errors
/// [`Unreadable`] when the bytes are not exactly what [`encode`] wrote for this record, or were written by a
/// version that this one does not know. Such a record is there: answer as if it were uncertain.
pub fn decode(id: &RecordId, head: &[u8], outcome: Option<&[u8]>) -> Result<Record, Unreadable> {
    let head: wire::Head = open(head, Seal::head(id), Part::Head)?;
    let nonce = head.nonce()?;
    let recorded = match (head.has_outcome, outcome) {
        (true, Some(bytes)) => Some(decode_outcome(id, nonce, bytes)?),
        (false, None) => None,
        (true, None) => return Err(Unreadable::OutcomeMissing),
        (false, Some(_)) => return Err(Unreadable::OutcomeForeign),
    };
    head.into_record(*id, recorded)
}

/// Reads back the outcome of the attempt `nonce` of the record `id`, for stores that keep heads in a way of their own.
///
/// # Errors
/// [`Unreadable`] as for [`decode`], about the outcome.
pub fn decode_outcome(id: &RecordId, nonce: Nonce, outcome: &[u8]) -> Result<Recorded, Unreadable> {
    let outcome: wire::Outcome = open(outcome, Seal::outcome(id, nonce), Part::Outcome)?;
    outcome.into_recorded()
}

/// Reads the record `id` back from its head alone, for those who need its times and not its outcome.
///
/// An outcome that the head tells of is empty in what is returned: do not store it, and answer nobody from it.
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
    let head: wire::Head = open(head, Seal::head(id), Part::Head)?;
    if !head.has_outcome {
        return head.into_record(*id, None);
    }
    // The state says of which class its outcome is; the wrong one is refused.
    let empty = |class| Some(Recorded::new(class, Format::OPERATOR, ""));
    head.clone()
        .into_record(*id, empty(Class::Success))
        .or_else(|_| head.into_record(*id, empty(Class::Error)))
}

/// Which of a record's two blobs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Everything but the outcome.
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

/// Why bytes are not a record that this version can read. It names positions and fields, never content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Unreadable {
    /// Too short to hold even a version and a checksum.
    Short(Part),
    /// Written in a layout that this version does not know.
    Version {
        /// Where.
        part: Part,
        /// What its first byte says.
        found: u8,
    },
    /// Damaged, or taken from another record or another attempt.
    Checksum(Part),
    /// The checksum is right and the fields are not: not written by this codec.
    Malformed(Part),
    /// A field holds a value that this version does not know.
    Field {
        /// Where.
        part: Part,
        /// Its name in `spec/record-format.md`.
        name: &'static str,
    },
    /// The head tells of an outcome that is not there.
    OutcomeMissing,
    /// There is an outcome of which the head knows nothing.
    OutcomeForeign,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(part) => write!(f, "the record's {part} is cut short"),
            Self::Version { part, found } => {
                write!(
                    f,
                    "the record's {part} is of version {found} and this program reads version {VERSION}"
                )
            }
            Self::Checksum(part) => {
                write!(f, "the record's {part} is damaged or belongs to another record or attempt")
            }
            Self::Malformed(part) => write!(f, "the record's {part} has a right checksum and wrong fields"),
            Self::Field { part, name } => {
                write!(f, "the field {name} of the record's {part} has an unknown value")
            }
            Self::OutcomeMissing => f.write_str("the record's outcome is missing"),
            Self::OutcomeForeign => f.write_str("there is an outcome of which the record knows nothing"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// A checksum that has already taken in what the blob belongs to, so that it fits nowhere else.
struct Seal(crc32fast::Hasher);

impl Seal {
    fn head(id: &RecordId) -> Self {
        Self::of(b'h', id)
    }

    fn outcome(id: &RecordId, nonce: Nonce) -> Self {
        let mut seal = Self::of(b'o', id);
        seal.0.update(nonce.as_bytes());
        seal
    }

    fn of(part: u8, id: &RecordId) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&[part, VERSION]);
        hasher.update(id.as_bytes());
        Self(hasher)
    }

    fn close(mut self, fields: &[u8]) -> [u8; 4] {
        self.0.update(fields);
        self.0.finalize().to_be_bytes()
    }
}

fn seal(message: &impl Message, seal: Seal) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX_LENGTH + message.encoded_len());
    bytes.extend_from_slice(&[VERSION, 0, 0, 0, 0]);
    message.encode_raw(&mut bytes);
    let checksum = seal.close(&bytes[PREFIX_LENGTH..]);
    bytes[1..PREFIX_LENGTH].copy_from_slice(&checksum);
    bytes
}

fn open<M: Message + Default>(bytes: &[u8], seal: Seal, part: Part) -> Result<M, Unreadable> {
    match bytes.first() {
        Some(&VERSION) => {}
        Some(&found) => return Err(Unreadable::Version { part, found }),
        None => return Err(Unreadable::Short(part)),
    }
    let Some((prefix, fields)) = bytes.split_at_checked(PREFIX_LENGTH) else {
        return Err(Unreadable::Short(part));
    };
    if prefix[1..] != seal.close(fields) {
        return Err(Unreadable::Checksum(part));
    }
    M::decode(fields).map_err(|_| Unreadable::Malformed(part))
}
