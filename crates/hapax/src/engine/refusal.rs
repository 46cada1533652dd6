//! [`Refusal`]: why an operation did not run, or has no known outcome.

use std::fmt;
use std::time::Duration;

use hapax_core::{Reason, RecordId, StoreError};

/// Why an operation did not run, or has no known outcome.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// Another attempt is running.
    InProgress {
        /// When a retry is worthwhile: soon, because the attempt may end before its lease does.
        retry_after: Duration,
        /// The remaining lease of that attempt, unless it is renewed.
        lease_left: Duration,
    },
    /// The key was used with another fingerprint.
    Mismatch,
    /// The key is older than records are kept, and there is no record of it; see
    /// [`ExpiredKeys`](crate::policy::ExpiredKeys).
    Expired,
    /// It is unknown whether the operation happened. It does not run again until its record is settled.
    Uncertain {
        /// The record to settle.
        id: RecordId,
        /// Why it is unknown.
        reason: Reason,
    },
    /// The run of this caller panicked.
    Panicked {
        /// The uncertain record.
        id: RecordId,
    },
    /// There is a record that cannot be read: the operation may have happened.
    Unreadable {
        /// The record.
        id: RecordId,
    },
    /// The operation ran, but another attempt had taken its record over.
    Superseded {
        /// The record with the outcome of the other attempt.
        id: RecordId,
    },
    /// The caller's deadline passed. A run that has begun goes on and is recorded.
    Deadline {
        /// The record of the run.
        id: RecordId,
    },
    /// The process is draining.
    Draining,
    /// The store took no claim and reported nothing about the key.
    StoreFailed(StoreError),
    /// The store failed after it had reported another attempt that runs, has ended or is uncertain. Even a caller that
    /// executes without a store must not execute this.
    StoreFailedOnKnownKey(StoreError),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InProgress { .. } => f.write_str("the operation is in progress"),
            Self::Mismatch => f.write_str("the key was used with another fingerprint"),
            Self::Expired => f.write_str("the key is older than records are kept"),
            Self::Uncertain { id, reason } => {
                write!(
                    f,
                    "it is unknown whether the operation happened ({}), settle record {id}",
                    reason.name()
                )
            }
            Self::Panicked { id } => write!(f, "the operation panicked, settle record {id}"),
            Self::Unreadable { id } => {
                write!(f, "record {id} cannot be read, the operation may have happened")
            }
            Self::Superseded { id } => write!(f, "another attempt took over, see record {id}"),
            Self::Deadline { id } => {
                write!(f, "no answer within the deadline, the operation may go on, see record {id}")
            }
            Self::Draining => f.write_str("this process is shutting down"),
            Self::StoreFailed(_) | Self::StoreFailedOnKnownKey(_) => {
                f.write_str("the store could not take the claim")
            }
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::StoreFailed(error) | Self::StoreFailedOnKnownKey(error) => Some(error),
            _ => None,
        }
    }
}
