//! [`OnceInError`]: why [`OnceIn::run`](super::OnceIn) has no result.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use hapax_core::{Reason, RecordId, StoreError};

/// Why there is no result. The work's writes are rolled back in every case.
#[derive(Debug)]
#[non_exhaustive]
pub enum OnceInError<E> {
    /// The input cannot be serialized as JSON, so it has no fingerprint. Nothing ran.
    Input(serde_json::Error),
    /// Another transaction, or a run of the ordinary mode, is executing this operation. Nothing ran; retry.
    InProgress {
        /// When to retry. Do not wait in an open transaction.
        retry_after: Duration,
    },
    /// The key was used with another input. Nothing ran.
    Mismatch,
    /// A run of the ordinary mode ended without a known outcome. The operation does not run again until its record is
    /// settled.
    Uncertain {
        /// The record to settle.
        id: RecordId,
        /// Why the outcome is unknown.
        reason: Reason,
    },
    /// The work failed. Its writes and the claim are rolled back, so a retry runs it again.
    Failed(E),
    /// A run of the ordinary mode failed permanently. Nothing ran.
    PreviouslyFailed {
        /// The record that holds the error.
        id: RecordId,
    },
    /// The operation ran before, but its result was not kept or cannot be deserialized as this type. Nothing ran.
    ResultUnavailable {
        /// The deserialization error, if a result was kept.
        source: Option<serde_json::Error>,
    },
    /// The record cannot be read: the operation may have run. Nothing ran.
    Unreadable {
        /// The record.
        id: RecordId,
    },
    /// The result cannot be serialized as JSON. The work's writes are rolled back.
    Output(serde_json::Error),
    /// A serialization failure or deadlock with another transaction. Roll the transaction back and run all of it again.
    Conflict(StoreError),
    /// The claim is gone: the work ended the transaction, or removed the record. Roll the transaction back.
    Ended {
        /// The record.
        id: RecordId,
    },
    /// A statement failed. Roll the transaction back.
    Store(StoreError),
}

impl<E> OnceInError<E> {
    /// Whether the whole transaction may succeed if it is run again from the beginning, perhaps a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::InProgress { .. } | Self::Conflict(_) => true,
            Self::Store(error) => error.is_transient(),
            _ => false,
        }
    }
}

impl<E> From<StoreError> for OnceInError<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<E> fmt::Display for OnceInError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(_) => f.write_str("the input cannot be written as JSON"),
            Self::InProgress { retry_after } => {
                write!(f, "the operation is in progress, retry in {} ms", retry_after.as_millis())
            }
            Self::Mismatch => f.write_str("the key was used with another input"),
            Self::Uncertain { id, reason } => {
                write!(f, "it is unknown whether the operation ran ({}), settle record {id}", reason.name())
            }
            Self::Failed(_) => f.write_str("the operation failed, its writes are rolled back"),
            Self::PreviouslyFailed { id } => write!(f, "the operation failed before, see record {id}"),
            Self::ResultUnavailable { .. } => {
                f.write_str("the operation ran before, its result is not available")
            }
            Self::Unreadable { id } => {
                write!(f, "record {id} cannot be read, the operation may have happened")
            }
            Self::Output(_) => f.write_str("the result cannot be written as JSON"),
            Self::Conflict(_) => f.write_str("the transaction conflicted with another, run it again"),
            Self::Ended { id } => write!(f, "the claim of record {id} is gone from the transaction"),
            Self::Store(_) => f.write_str("a statement of the store failed"),
        }
    }
}

impl<E: Error + 'static> Error for OnceInError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Input(error) | Self::Output(error) | Self::ResultUnavailable { source: Some(error) } => {
                Some(error)
            }
            Self::Failed(error) => Some(error),
            Self::Conflict(error) | Self::Store(error) => Some(error),
            _ => None,
        }
    }
}
