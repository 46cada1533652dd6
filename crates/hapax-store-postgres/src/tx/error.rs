//! [`OnceInError`]: why [`OnceIn::run`](super::OnceIn) has no result.

use std::time::Duration;

use hapax_core::{Reason, RecordId, StoreError};

/// Why there is no result. The work's writes are rolled back in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnceInError<E> {
    /// The input cannot be serialized as JSON, so it has no fingerprint. Nothing ran.
    #[error("the input cannot be written as JSON")]
    Input(#[source] serde_json::Error),
    /// Another transaction, or a run of the ordinary mode, is executing this operation. Nothing ran; retry.
    #[error("the operation is in progress, retry in {} ms", .retry_after.as_millis())]
    InProgress {
        /// When to retry. Do not wait in an open transaction.
        retry_after: Duration,
    },
    /// The key was used with another input. Nothing ran.
    #[error("the key was used with another input")]
    Mismatch,
    /// A run of the ordinary mode ended without a known outcome. The operation does not run again until its record is
    /// settled.
    #[error("it is unknown whether the operation ran ({}), settle record {id}", .reason.name())]
    Uncertain {
        /// The record to settle.
        id: RecordId,
        /// Why the outcome is unknown.
        reason: Reason,
    },
    /// The work failed. Its writes and the claim are rolled back, so a retry runs it again.
    #[error("the operation failed, its writes are rolled back")]
    Failed(#[source] E),
    /// A run of the ordinary mode failed permanently. Nothing ran.
    #[error("the operation failed before, see record {id}")]
    PreviouslyFailed {
        /// The record that holds the error.
        id: RecordId,
    },
    /// The operation ran before, but its result was not kept or cannot be deserialized as this type. Nothing ran.
    #[error("the operation ran before, its result is not available")]
    ResultUnavailable {
        /// The deserialization error, if a result was kept.
        source: Option<serde_json::Error>,
    },
    /// The record cannot be read: the operation may have run. Nothing ran.
    #[error("record {id} cannot be read, the operation may have happened")]
    Unreadable {
        /// The record.
        id: RecordId,
    },
    /// The result cannot be serialized as JSON. The work's writes are rolled back.
    #[error("the result cannot be written as JSON")]
    Output(#[source] serde_json::Error),
    /// A serialization failure or deadlock with another transaction. Roll the transaction back and run all of it again.
    #[error("the transaction conflicted with another, run it again")]
    Conflict(#[source] StoreError),
    /// The claim is gone: the work ended the transaction, or removed the record. Roll the transaction back.
    #[error("the claim of record {id} is gone from the transaction")]
    Ended {
        /// The record.
        id: RecordId,
    },
    /// A statement failed. Roll the transaction back.
    #[error("a statement of the store failed")]
    Store(#[from] StoreError),
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
