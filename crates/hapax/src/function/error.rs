//! [`OnceError`]: why [`Once::run`](super::Once::run) returned no result.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use hapax_core::{Class, Format, KeyError, Reason, RecordId, Recorded, StoreError};
use serde::{Deserialize, Serialize};

use crate::engine::Refusal;

/// Why there is no result. Only [`Failed`](Self::Failed) and [`PreviouslyFailed`](Self::PreviouslyFailed) come from
/// the work itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum OnceError<E> {
    /// The key is invalid. Nothing ran.
    Key(KeyError),
    /// The input cannot be written as JSON, so it has no fingerprint. Nothing ran.
    Input(serde_json::Error),
    /// Another attempt is running. Retry.
    InProgress {
        /// How long to wait before the retry.
        retry_after: Duration,
    },
    /// The key was used with another input. Nothing ran.
    Mismatch,
    /// The key was made longer ago than records are kept, and it has no record: it may have been used and its record
    /// removed. Nothing ran. See [`ExpiredKeys`](crate::policy::ExpiredKeys).
    Expired,
    /// It is unknown whether the operation happened. It does not run again until its record is settled.
    Uncertain {
        /// The record to settle.
        id: RecordId,
        /// Why it is unknown.
        reason: Reason,
    },
    /// The work ran now and failed. If a [`Fail::Permanent`](super::Fail::Permanent) could not be stored, a retry finds
    /// the operation in progress or uncertain, as after any result that was not recorded.
    Failed(E),
    /// The work ran before and failed permanently; this is its stored error.
    PreviouslyFailed(StoredError),
    /// The work ran before, but its result was not kept or cannot be read as this type. It does not run again.
    ResultUnavailable {
        /// Why the stored result cannot be read, if one was kept.
        source: Option<serde_json::Error>,
    },
    /// The caller's deadline passed. If the work has begun it continues, and its result will be recorded: retry for it.
    Deadline {
        /// The record of the operation.
        id: RecordId,
    },
    /// Another attempt took the operation over while this one ran; retry for its result.
    Superseded {
        /// The record of the operation.
        id: RecordId,
    },
    /// The record of the key cannot be read: the operation may have happened.
    Unreadable {
        /// The record.
        id: RecordId,
    },
    /// This process is shutting down. Nothing ran.
    Draining,
    /// The store could not take the claim. Nothing ran.
    Store(StoreError),
}

impl<E> From<Refusal> for OnceError<E> {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::InProgress { retry_after } => Self::InProgress { retry_after },
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

impl<E> fmt::Display for OnceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(_) => f.write_str("invalid key"),
            Self::Input(_) => f.write_str("the input cannot be written as JSON"),
            Self::InProgress { retry_after } => {
                write!(f, "the operation is in progress, retry in {} ms", retry_after.as_millis())
            }
            Self::Mismatch => f.write_str("the key was used with another input"),
            Self::Expired => f.write_str("the key is older than records are kept"),
            Self::Uncertain { id, reason } => {
                write!(
                    f,
                    "it is unknown whether the operation happened ({}), settle record {id}",
                    reason.name()
                )
            }
            Self::Failed(_) => f.write_str("the operation failed"),
            Self::PreviouslyFailed(stored) => write!(f, "the operation failed before: {stored}"),
            Self::ResultUnavailable { .. } => {
                f.write_str("the operation ran before, its result is not available")
            }
            Self::Deadline { id } => {
                write!(f, "no answer within the deadline, the operation may go on, see record {id}")
            }
            Self::Superseded { id } => write!(f, "another attempt took over, see record {id}"),
            Self::Unreadable { id } => {
                write!(f, "record {id} cannot be read, the operation may have happened")
            }
            Self::Draining => f.write_str("this process is shutting down"),
            Self::Store(_) => f.write_str("the store could not take the claim"),
        }
    }
}

impl<E: Error + 'static> Error for OnceError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Key(error) => Some(error),
            Self::Input(error) => Some(error),
            Self::Failed(error) => Some(error),
            Self::PreviouslyFailed(error) => Some(error),
            Self::ResultUnavailable { source } => source.as_ref().map(|error| error as _),
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

/// The stored form of a pinned error: its text, and its data if it has any.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredError {
    /// The error's text.
    pub message: String,
    /// The argument of [`Fail::permanent_with`](super::Fail::permanent_with).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl StoredError {
    pub(super) fn encode(&self) -> Recorded {
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

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StoredError {}
