//! The stored value: a fixed-layout head, which scripts read and write, then names, then the outcome.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version: 1 |
//! | 1 | state, 1 | reason, 1 | fingerprint's algorithm |
//! | 16 | nonce |
//! | 4, 4 | attempt, takeovers |
//! | 8, 8, 8, 8 | created, updated, expires, lease until: milliseconds since the Unix epoch |
//! | 32 | fingerprint's digest |
//! | 4 | length of the names |
//! | 16 | seal: the first hexadecimal digits of SHA-1 over the head, the id in hexadecimal and the names |
//! | … | names: 1 and the principal's 16 bytes or 0, length of the namespace (4), namespace, operation |
//! | … | outcome, as `hapax_core::codec` writes it; nothing when there is none |
//!
//! Integers are unsigned and big-endian. A first claim is written by a command that knows no time: its created and updated
//! are zero, and its expires and lease until are spans. The longer span is the key's time to live, so the time of the
//! claim is the key's expiry minus that span. `lua/record.lua` reads and writes the same bytes.

use std::time::Duration;

use hapax_core::key::PrincipalHash;
use hapax_core::{
    ClaimRequest, Class, Fence, Fingerprint, Format, Nonce, Reason, Record, RecordId, Recorded, Scope,
    ScopedKey, State, Status, Timestamp, codec,
};
use sha1::{Digest as _, Sha1};

/// The version of the layout that this crate writes.
pub const VERSION: u32 = 1;

/// The same as the first byte of a value.
const VERSION_BYTE: u8 = 1;
const HEAD_BYTES: usize = 96;
const SEAL_BYTES: usize = 16;

/// The length of the id in hexadecimal, with which a record's key ends.
pub(crate) const ID_DIGITS: usize = 64;

/// The longest span that is stored, some 35 000 years: integers beyond 2^53 are not exact in Lua.
const SPAN_MS_MAX: u64 = 1 << 50;

/// A parsed value with a valid seal.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) state: State,
    pub(crate) nonce: Nonce,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) updated_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) outcome: &'a [u8],
    reason: u8,
    attempt: u32,
    takeovers: u32,
    created_at: Timestamp,
    lease_until: Timestamp,
    names: &'a [u8],
}

/// Why a value is not a readable record. Names fields, never content.
pub(crate) type Unreadable = &'static str;

/// A span in milliseconds, as scripts and heads store it.
pub(crate) fn span_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).min(SPAN_MS_MAX)
}

/// The value that a first claim writes under `key`, and its time to live in milliseconds.
pub(crate) fn first_claim(ask: &ClaimRequest, key: &str) -> (Vec<u8>, u64) {
    let (retention, lease) = (span_ms(ask.uncertain_retention), span_ms(ask.lease));
    let names = names(&ask.key.scope);
    let mut value = Vec::with_capacity(HEAD_BYTES + SEAL_BYTES + names.len());
    value.extend_from_slice(&[VERSION_BYTE, state_number(State::InProgress), 0, ask.fingerprint.algorithm()]);
    value.extend_from_slice(ask.nonce.as_bytes());
    value.extend_from_slice(&1_u32.to_be_bytes());
    value.extend_from_slice(&0_u32.to_be_bytes());
    for span in [0, 0, retention, lease] {
        value.extend_from_slice(&span.to_be_bytes());
    }
    value.extend_from_slice(ask.fingerprint.digest());
    let names_bytes = u32::try_from(names.len()).expect("names are limited before they are written");
    value.extend_from_slice(&names_bytes.to_be_bytes());
    let seal = seal(&value, key, &names);
    value.extend_from_slice(&seal);
    value.extend_from_slice(&names);
    (value, retention.max(lease).max(1))
}

impl<'a> Stored<'a> {
    /// Parses the value under `key`; `None` if its seal does not match.
    pub(crate) fn open(key: &str, value: &'a [u8]) -> Option<Self> {
        let (head, rest) = value.split_at_checked(HEAD_BYTES)?;
        let (found, rest) = rest.split_at_checked(SEAL_BYTES)?;
        let mut fields = Fields(head);
        let [version, state, reason, algorithm] = fields.bytes::<4>()?;
        let stored = Self {
            state: State::ALL.into_iter().find(|known| state_number(*known) == state)?,
            reason,
            nonce: Nonce::from_bytes(fields.bytes()?),
            attempt: u32::from_be_bytes(fields.bytes()?),
            takeovers: u32::from_be_bytes(fields.bytes()?),
            created_at: fields.time()?,
            updated_at: fields.time()?,
            expires_at: fields.time()?,
            lease_until: fields.time()?,
            fingerprint: Fingerprint::from_parts(algorithm, fields.bytes()?),
            names: &[],
            outcome: &[],
        };
        let names_bytes = usize::try_from(u32::from_be_bytes(fields.bytes()?)).ok()?;
        let (names, outcome) = rest.split_at_checked(names_bytes)?;
        let is_whole = version == VERSION_BYTE && found == seal(head, key, names);
        is_whole.then_some(Self { names, outcome, ..stored })
    }

    /// Whether this is a pinned outcome.
    pub(crate) fn is_pinned(&self) -> bool {
        self.state.is_terminal()
    }

    /// The stored outcome.
    pub(crate) fn recorded(&self, id: &RecordId) -> Result<Recorded, Unreadable> {
        outcome(id, self.nonce, self.outcome)
    }

    /// The whole record. `expiry` is when the server drops its key; negative means never.
    pub(crate) fn record(&self, id: RecordId, expiry: i64) -> Result<Record, Unreadable> {
        let recorded = if self.outcome.is_empty() { None } else { Some(self.recorded(&id)?) };
        self.with_outcome(id, expiry, recorded)
    }

    /// The record with an empty outcome: do not replay from it.
    pub(crate) fn outline(&self, id: RecordId, expiry: i64) -> Result<Record, Unreadable> {
        let class = if self.state == State::Failed { Class::Error } else { Class::Success };
        let recorded = self.is_pinned().then(|| Recorded::new(class, Format::OPERATOR, ""));
        self.with_outcome(id, expiry, recorded)
    }

    fn with_outcome(
        &self,
        id: RecordId,
        expiry: i64,
        recorded: Option<Recorded>,
    ) -> Result<Record, Unreadable> {
        let times = self.times(expiry).ok_or("a claim whose key has no time to live")?;
        let status = match (self.state, recorded) {
            (State::InProgress, None) => Status::InProgress { lease_until: times.lease_until },
            (State::Uncertain, None) => {
                Status::Uncertain { reason: reason(self.reason).ok_or("an unknown reason code")? }
            }
            (State::Released, answered) => Status::Released { answered },
            (State::Completed, Some(recorded)) if recorded.class == Class::Success => {
                Status::Pinned { recorded }
            }
            (State::Failed, Some(recorded)) if recorded.class == Class::Error => Status::Pinned { recorded },
            _ => return Err("an outcome that contradicts the state"),
        };
        Ok(Record {
            key: ScopedKey { scope: scope(self.names).ok_or("names that are not UTF-8")?, id },
            fingerprint: self.fingerprint,
            fence: Fence { nonce: self.nonce, attempt: self.attempt },
            takeovers: self.takeovers,
            status,
            created_at: times.created_at,
            updated_at: times.updated_at,
            expires_at: times.expires_at,
        })
    }

    fn times(&self, expiry: i64) -> Option<Times> {
        if self.created_at != Timestamp::default() {
            let Self { created_at, updated_at, expires_at, lease_until, .. } = *self;
            return Some(Times { created_at, updated_at, expires_at, lease_until });
        }
        let (retention, lease) = (self.expires_at.as_millis(), self.lease_until.as_millis());
        let created_ms = u64::try_from(expiry).ok()?.checked_sub(retention.max(lease))?;
        let at = |span| Timestamp::from_millis(created_ms.saturating_add(span));
        Some(Times {
            created_at: at(0),
            updated_at: at(0),
            expires_at: at(retention),
            lease_until: at(lease),
        })
    }
}

struct Times {
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: Timestamp,
    lease_until: Timestamp,
}

/// Decodes the outcome of the attempt `nonce` of the record `id`.
pub(crate) fn outcome(id: &RecordId, nonce: Nonce, bytes: &[u8]) -> Result<Recorded, Unreadable> {
    codec::decode_outcome(id, nonce, bytes).map_err(|_| "a damaged outcome, or one of another attempt")
}

/// The unread rest of a head.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn time(&mut self) -> Option<Timestamp> {
        self.bytes().map(|bytes| Timestamp::from_millis(u64::from_be_bytes(bytes)))
    }
}

/// The seal is bound to one record: the id at the end of the key is part of it.
fn seal(head: &[u8], key: &str, names: &[u8]) -> [u8; SEAL_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let id = &key.as_bytes()[key.len().saturating_sub(ID_DIGITS)..];
    let digest = Sha1::new().chain_update(head).chain_update(id).chain_update(names).finalize();
    let mut seal = [0; SEAL_BYTES];
    for (digits, byte) in seal.chunks_exact_mut(2).zip(digest) {
        digits.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
    }
    seal
}

fn names(scope: &Scope) -> Vec<u8> {
    let (namespace, operation) = (scope.namespace().as_bytes(), scope.operation().as_bytes());
    let mut names = Vec::with_capacity(21 + namespace.len() + operation.len());
    match scope.principal_hash() {
        Some(hash) => {
            names.push(1);
            names.extend_from_slice(hash.as_bytes());
        }
        None => names.push(0),
    }
    let namespace_bytes = u32::try_from(namespace.len()).expect("names are limited before they are written");
    names.extend_from_slice(&namespace_bytes.to_be_bytes());
    names.extend_from_slice(namespace);
    names.extend_from_slice(operation);
    names
}

fn scope(names: &[u8]) -> Option<Scope> {
    let mut fields = Fields(names);
    let principal = match fields.bytes::<1>()? {
        [0] => None,
        [1] => Some(PrincipalHash::from_bytes(fields.bytes()?)),
        _ => return None,
    };
    let namespace_bytes = usize::try_from(u32::from_be_bytes(fields.bytes()?)).ok()?;
    let (namespace, operation) = fields.0.split_at_checked(namespace_bytes)?;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    Some(Scope::from_parts(text(namespace)?, principal, text(operation)?))
}

/// The code of a state in a head.
pub(crate) const fn state_number(state: State) -> u8 {
    match state {
        State::InProgress => 1,
        State::Completed => 2,
        State::Failed => 3,
        State::Uncertain => 4,
        State::Released => 5,
    }
}

/// The state with this code.
pub(crate) fn state(number: u8) -> Option<State> {
    State::ALL.into_iter().find(|state| state_number(*state) == number)
}

/// The code of a reason in a head.
pub(crate) const fn reason_number(reason: Reason) -> u8 {
    match reason {
        Reason::Lapsed => 1,
        Reason::Panicked => 2,
        Reason::Restarted => 3,
        Reason::Declared => 4,
        Reason::Reset => 5,
        Reason::TimedOut => 6,
        Reason::Truncated => 7,
        Reason::Answered => 8,
        Reason::NoAnswer => 9,
    }
}

/// The reason with this code.
pub(crate) fn reason(number: u8) -> Option<Reason> {
    Reason::ALL.into_iter().find(|reason| reason_number(*reason) == number)
}

#[cfg(test)]
mod tests;
