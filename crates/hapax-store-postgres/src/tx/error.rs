//! What [`OnceIn::run`](super::OnceIn) answers when there is no result.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use hapax_core::{Reason, RecordId, StoreError};

/// Why there is no result. The work's writes are taken back in every case.
#[derive(Debug)]
#[non_exhaustive]
pub enum OnceInError<E> {
    /// The input cannot be written as JSON, so it has no fingerprint. Nothing ran.
    Input(serde_json::Error),
    /// Another transaction, or a run of the ordinary mode, is at this operation. Nothing ran; ask again.
    InProgress {
        /// When it is worth asking again. Do not wait in an open transaction.
        retry_after: Duration,
    },
    /// The key was used with another input. Nothing ran.
    Mismatch,
    /// A run of the ordinary mode left nobody knowing whether the operation happened. It does not run again until
    /// somebody settles its record.
    Uncertain {
        /// The record to settle.
        id: RecordId,
        /// Why nobody knows.
        reason: Reason,
    },
    /// The work failed. Its writes and the claim are taken back, so a retry runs it again.
    Failed(E),
    /// A run of the ordinary mode failed for good. Nothing ran.
    PreviouslyFailed {
        /// The record that holds the error.
        id: RecordId,
    },
    /// The operation happened before, but its result was not kept or cannot be read as this type. Nothing ran.
    ResultUnavailable {
        /// What was wrong with the stored result, when one was kept.
        source: Option<serde_json::Error>,
    },
    /// There is a record that cannot be read: it may have happened. Nothing ran.
    Unreadable {
        /// The record.
        id: RecordId,
    },
    /// The result of the work cannot be written as JSON. Its writes are taken back.
    Output(serde_json::Error),
    /// The server could not put this transaction and another one in an order, or they waited for each other. Roll the
    /// transaction back and run all of it again.
    Conflict(StoreError),
    /// The claim is gone: the work ended the transaction, or removed the record. Roll back what is left of it.
    Ended {
        /// The record.
        id: RecordId,
    },
    /// A statement failed. Roll the transaction back.
    Store(StoreError),
}

impl<E> OnceInError<E> {
    /// Whether the whole transaction may succeed when it is run again from its beginning, perhaps a little later.
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
                write!(f, "the operation is in progress, ask again in {} ms", retry_after.as_millis())
            }
            Self::Mismatch => f.write_str("the key was used with another input"),
            Self::Uncertain { id, reason } => write!(
                f,
                "nobody knows whether the operation happened ({}), settle record {id}",
                reason.name()
            ),
            Self::Failed(_) => f.write_str("the operation failed, its writes are taken back"),
            Self::PreviouslyFailed { id } => write!(f, "the operation failed before, see record {id}"),
            Self::ResultUnavailable { .. } => {
                f.write_str("the operation ran before, its result is not available")
            }
            Self::Unreadable { id } => {
                write!(f, "record {id} cannot be read, the operation may have happened")
            }
            Self::Output(_) => f.write_str("the result cannot be written as JSON"),
            Self::Conflict(_) => f.write_str("the transaction was in conflict with another, run it again"),
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
