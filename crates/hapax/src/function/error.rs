//! [`OnceError`]: why [`Once::run`](super::Once::run) returned no result.

use std::time::Duration;

use hapax_core::{Class, Format, KeyError, Reason, RecordId, Recorded, StoreError};
use serde::{Deserialize, Serialize};

use crate::engine::Refusal;

/// Why there is no result. Only [`Failed`](Self::Failed) and [`PreviouslyFailed`](Self::PreviouslyFailed) come from
/// the work itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError<E> {
    /// The key is invalid. Nothing ran.
    #[error("invalid key")]
    Key(#[source] KeyError),
    /// The input cannot be written as JSON, so it has no fingerprint. Nothing ran.
    #[error("the input cannot be written as JSON")]
    Input(#[source] serde_json::Error),
    /// Another attempt is running. Retry.
    #[error("the operation is in progress, retry in {} ms", retry_after.as_millis())]
    InProgress {
        /// How long to wait before the retry.
        retry_after: Duration,
    },
    /// The key was used with another input. Nothing ran.
    #[error("the key was used with another input")]
    Mismatch,
    /// The key was made longer ago than records are kept, and it has no record: it may have been used and its record
    /// removed. Nothing ran. See [`ExpiredKeys`](crate::policy::ExpiredKeys).
    #[error("the key is older than records are kept")]
    Expired,
    /// It is unknown whether the operation happened. It does not run again until its record is settled.
    #[error("it is unknown whether the operation happened ({}), settle record {id}", reason.name())]
    Uncertain {
        /// The record to settle.
        id: RecordId,
        /// Why it is unknown.
        reason: Reason,
    },
    /// The work ran now and failed. If a [`Fail::Permanent`](super::Fail::Permanent) could not be stored, a retry finds
    /// the operation in progress or uncertain, as after any result that was not recorded.
    #[error("the operation failed")]
    Failed(#[source] E),
    /// The work ran before and failed permanently; this is its stored error.
    #[error("the operation failed before: {0}")]
    PreviouslyFailed(#[source] StoredError),
    /// The work ran before, but its result was not kept or cannot be read as this type. It does not run again.
    #[error("the operation ran before, its result is not available")]
    ResultUnavailable {
        /// Why the stored result cannot be read, if one was kept.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The caller's deadline passed. If the work has begun it continues, and its result will be recorded: retry for it.
    #[error("no answer within the deadline, the operation may go on, see record {id}")]
    Deadline {
        /// The record of the operation.
        id: RecordId,
    },
    /// Another attempt took the operation over while this one ran; retry for its result.
    #[error("another attempt took over, see record {id}")]
    Superseded {
        /// The record of the operation.
        id: RecordId,
    },
    /// The record of the key cannot be read: the operation may have happened.
    #[error("record {id} cannot be read, the operation may have happened")]
    Unreadable {
        /// The record.
        id: RecordId,
    },
    /// This process is shutting down. Nothing ran.
    #[error("this process is shutting down")]
    Draining,
    /// A function with `#[idempotent]` names no [`Hapax`](crate::Hapax), and none is registered. Nothing ran. Call
    /// [`Hapax::set_global`](crate::Hapax::set_global) at start-up, or write `#[idempotent(engine = …)]`.
    #[error(
        "no default Hapax is registered: call `Hapax::set_global` at start-up, or write `#[idempotent(engine = ...)]`"
    )]
    NoGlobal,
    /// The store could not take the claim. Nothing ran.
    #[error("the store could not take the claim")]
    Store(#[source] StoreError),
}

impl<E> From<Refusal> for OnceError<E> {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::InProgress { retry_after, .. } => Self::InProgress { retry_after },
            Refusal::Mismatch => Self::Mismatch,
            Refusal::Expired => Self::Expired,
            Refusal::Uncertain { id, reason } => Self::Uncertain { id, reason },
            Refusal::Panicked { id } => Self::Uncertain { id, reason: Reason::Panicked },
            Refusal::Unreadable { id } => Self::Unreadable { id },
            Refusal::Superseded { id } => Self::Superseded { id },
            Refusal::Deadline { id } => Self::Deadline { id },
            Refusal::Draining => Self::Draining,
            Refusal::StoreFailed(error) | Refusal::StoreFailedOnKnownKey(error) => Self::Store(error),
        }
    }
}

/// The stored form of a pinned error: its text, and its data if it has any.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct StoredError {
    /// The error's text.
    pub message: String,
    /// The argument of [`Fail::permanent_with`](super::Fail::permanent_with).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl StoredError {
    pub(crate) fn encode(&self) -> Recorded {
        // Strings and JSON values always have a JSON form.
        let json = serde_json::to_vec(self).unwrap_or_default();
        Recorded::new(Class::Error, Format::FUNCTION, json)
    }

    pub(super) fn decode(recorded: &Recorded) -> Self {
        serde_json::from_slice(&recorded.payload).unwrap_or_else(|_| Self {
            // Settled by an operator: plain text.
            message: String::from_utf8_lossy(&recorded.payload).into_owned(),
            data: None,
        })
    }
}
