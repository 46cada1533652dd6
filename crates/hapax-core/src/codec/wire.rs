//! The protobuf messages of version 1. Tags are never reused; new fields must be safe to ignore.

use bytes::Bytes;

use super::{Part, Unreadable};
use crate::fingerprint::Fingerprint;
use crate::key::{PrincipalHash, RecordId, Scope, ScopedKey};
use crate::record::{Class, Fence, Format, Nonce, Reason, Record, Recorded, State, Status, Timestamp};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HeadMessage {
    #[prost(uint32, tag = "1")]
    state: u32,
    #[prost(bytes = "vec", tag = "2")]
    nonce: Vec<u8>,
    #[prost(uint32, tag = "3")]
    attempt: u32,
    #[prost(uint32, tag = "4")]
    fingerprint_algorithm: u32,
    #[prost(bytes = "vec", tag = "5")]
    fingerprint_digest: Vec<u8>,
    #[prost(uint64, tag = "6")]
    created_at_ms: u64,
    #[prost(uint64, tag = "7")]
    updated_at_ms: u64,
    #[prost(uint64, tag = "8")]
    expires_at_ms: u64,
    #[prost(uint64, tag = "9")]
    lease_until_ms: u64,
    #[prost(uint32, tag = "10")]
    reason: u32,
    #[prost(bool, tag = "11")]
    pub(super) has_outcome: bool,
    #[prost(string, tag = "12")]
    namespace: String,
    #[prost(bytes = "vec", optional, tag = "13")]
    principal: Option<Vec<u8>>,
    #[prost(string, tag = "14")]
    operation: String,
    #[prost(uint32, tag = "15")]
    takeovers: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OutcomeMessage {
    #[prost(uint32, tag = "1")]
    class: u32,
    #[prost(uint32, tag = "2")]
    format: u32,
    #[prost(bytes = "bytes", tag = "3")]
    meta: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    payload: Bytes,
}

impl HeadMessage {
    pub(super) fn from_record(record: &Record) -> Self {
        let scope = &record.key.scope;
        let lease_until = match record.status {
            Status::InProgress { lease_until } => lease_until,
            _ => Timestamp::default(),
        };
        let reason = match record.status {
            Status::Uncertain { reason } => reason_number(reason),
            _ => 0,
        };
        Self {
            state: state_number(record.state()),
            nonce: record.fence.nonce.as_bytes().to_vec(),
            attempt: record.fence.attempt,
            fingerprint_algorithm: record.fingerprint.algorithm().into(),
            fingerprint_digest: record.fingerprint.digest().to_vec(),
            created_at_ms: record.created_at.as_millis(),
            updated_at_ms: record.updated_at.as_millis(),
            expires_at_ms: record.expires_at.as_millis(),
            lease_until_ms: lease_until.as_millis(),
            reason,
            has_outcome: record.recorded().is_some(),
            namespace: scope.namespace().to_owned(),
            principal: scope.principal_hash().map(|hash| hash.as_bytes().to_vec()),
            operation: scope.operation().to_owned(),
            takeovers: record.takeovers,
        }
    }

    pub(super) fn nonce(&self) -> Result<Nonce, Unreadable> {
        exactly("nonce", &self.nonce).map(Nonce::from_bytes)
    }

    pub(super) fn into_record(self, id: RecordId, recorded: Option<Recorded>) -> Result<Record, Unreadable> {
        let algorithm =
            u8::try_from(self.fingerprint_algorithm).map_err(|_| field("fingerprint_algorithm"))?;
        let digest = exactly("fingerprint_digest", &self.fingerprint_digest)?;
        let principal = match &self.principal {
            Some(bytes) => Some(PrincipalHash::from_bytes(exactly("principal", bytes)?)),
            None => None,
        };
        Ok(Record {
            fence: Fence { nonce: self.nonce()?, attempt: self.attempt },
            takeovers: self.takeovers,
            fingerprint: Fingerprint::from_parts(algorithm, digest),
            status: self.status(recorded)?,
            created_at: Timestamp::from_millis(self.created_at_ms),
            updated_at: Timestamp::from_millis(self.updated_at_ms),
            expires_at: Timestamp::from_millis(self.expires_at_ms),
            key: ScopedKey { scope: Scope::from_parts(&self.namespace, principal, &self.operation), id },
        })
    }

    /// Refuses an outcome whose class does not match the state: it would be replayed as another result.
    fn status(&self, recorded: Option<Recorded>) -> Result<Status, Unreadable> {
        let state = State::ALL
            .into_iter()
            .find(|state| state_number(*state) == self.state)
            .ok_or_else(|| field("state"))?;
        match (state, recorded) {
            (State::InProgress, None) => {
                Ok(Status::InProgress { lease_until: Timestamp::from_millis(self.lease_until_ms) })
            }
            (State::Completed, Some(recorded)) if recorded.class == Class::Success => {
                Ok(Status::Pinned { recorded })
            }
            (State::Failed, Some(recorded)) if recorded.class == Class::Error => {
                Ok(Status::Pinned { recorded })
            }
            (State::Uncertain, None) => Reason::ALL
                .into_iter()
                .find(|reason| reason_number(*reason) == self.reason)
                .map(|reason| Status::Uncertain { reason })
                .ok_or_else(|| field("reason")),
            (State::Released, answered) => Ok(Status::Released { answered }),
            _ => Err(field("has_outcome")),
        }
    }
}

impl OutcomeMessage {
    pub(super) fn from_recorded(recorded: &Recorded) -> Self {
        Self {
            class: class_number(recorded.class),
            format: recorded.format.0.into(),
            meta: recorded.meta.clone(),
            payload: recorded.payload.clone(),
        }
    }

    pub(super) fn into_recorded(self) -> Result<Recorded, Unreadable> {
        let unknown = |name| Unreadable::Field { part: Part::Outcome, name };
        let class = [Class::Success, Class::Error]
            .into_iter()
            .find(|class| class_number(*class) == self.class)
            .ok_or_else(|| unknown("class"))?;
        let format = u8::try_from(self.format).map(Format).map_err(|_| unknown("format"))?;
        Ok(Recorded { class, format, meta: self.meta, payload: self.payload })
    }
}

// Zero is never used: a missing field decodes as zero.

const fn state_number(state: State) -> u32 {
    match state {
        State::InProgress => 1,
        State::Completed => 2,
        State::Failed => 3,
        State::Uncertain => 4,
        State::Released => 5,
    }
}

const fn reason_number(reason: Reason) -> u32 {
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

const fn class_number(class: Class) -> u32 {
    match class {
        Class::Success => 1,
        Class::Error => 2,
    }
}

fn exactly<const N: usize>(name: &'static str, bytes: &[u8]) -> Result<[u8; N], Unreadable> {
    bytes.try_into().map_err(|_| field(name))
}

const fn field(name: &'static str) -> Unreadable {
    Unreadable::Field { part: Part::Head, name }
}
