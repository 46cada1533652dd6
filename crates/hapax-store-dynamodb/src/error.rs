//! Errors: maps the service's errors to [`StoreErrorKind`] in one place.

use std::error::Error;
use std::fmt;

use hapax_core::{StoreError, StoreErrorKind};
use serde_json::Value;

/// Why a table cannot be used as a store; the source of the [`StoreError`] that
/// [`DynamoDbStore::connect`](crate::DynamoDbStore::connect) returns. Each message says what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is not a valid store URL.
    #[error("the store's URL is wrong: {why}")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// There is no such table.
    #[error(
        "there is no table {table:?} in this Region; create it with `hapax migrate`, or check the name and the Region"
    )]
    Missing {
        /// The table.
        table: String,
    },
    /// The table's key is not the one that this crate needs.
    #[error(
        "the key of the table {table:?} is not one string called id; name another table, or create one with \
         `hapax migrate`"
    )]
    Shape {
        /// The table.
        table: String,
    },
    /// The table has replicas in other Regions that accept writes.
    #[error(
        "the table {table:?} has replicas in other Regions, and two Regions could both claim a key; use a table \
         of one Region or one with strong consistency, or give every key one home Region and accept the rest \
         with replicas=accept"
    )]
    Replicated {
        /// The table.
        table: String,
    },
    /// There are no credentials, or they cannot be used.
    #[error("no usable credentials: {why}")]
    Credentials {
        /// Which source failed and why, or which sources were tried. Never a secret.
        why: String,
    },
    /// TLS cannot be configured: the machine has no trusted certificates.
    #[error("TLS cannot be set up; install the system's trusted certificates")]
    Tls,
}

impl OpenError {
    fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Url { .. } => StoreErrorKind::Invalid,
            Self::Missing { .. } | Self::Credentials { .. } | Self::Tls => StoreErrorKind::Unavailable,
            Self::Shape { .. } | Self::Replicated { .. } => StoreErrorKind::Incompatible,
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::new(error.kind(), "open").with_source(error)
    }
}

/// What a call may have changed when it fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Nothing.
    Read,
    /// It may have been applied once it was sent.
    Write,
}

/// An error response of the service.
#[derive(Clone, PartialEq)]
pub(crate) struct ServiceError {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Its name, without the namespace.
    pub(crate) name: String,
    /// The whole body.
    pub(crate) body: Value,
}

impl ServiceError {
    /// Parses an error's body, which may be anything.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let name = body["__type"].as_str().unwrap_or_default();
        let name = name.rsplit('#').next().unwrap_or_default().to_owned();
        Self { status, name, body }
    }

    /// Whether the condition of a write did not hold.
    pub(crate) fn is_failed_condition(&self) -> bool {
        self.name == "ConditionalCheckFailedException"
    }

    /// Why each item of a transaction was refused, in the order of the items.
    pub(crate) fn reasons(&self) -> Option<&Vec<Value>> {
        (self.name == "TransactionCanceledException")
            .then(|| self.body["CancellationReasons"].as_array())
            .flatten()
    }

    /// Whether a transaction was refused because of an item that no table would take.
    fn is_invalid_item(&self) -> bool {
        let is_invalid = |reason: &Value| reason["Code"] == "ValidationError";
        self.reasons().is_some_and(|reasons| reasons.iter().any(is_invalid))
    }

    /// Whether the service reported that it did nothing and that a retry may succeed.
    pub(crate) fn is_retryable(&self) -> bool {
        let passing = |name: &str| {
            matches!(
                name,
                "ProvisionedThroughputExceededException"
                    | "ThrottlingException"
                    | "RequestLimitExceeded"
                    | "TransactionConflictException"
                    | "TransactionInProgressException"
            )
        };
        let conflicts = |reasons: &Vec<Value>| {
            let mut codes = reasons.iter().map(|reason| reason["Code"].as_str().unwrap_or_default());
            codes.any(|code| {
                matches!(code, "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded")
            }) && !reasons.iter().any(|reason| reason["Code"] == "ConditionalCheckFailed")
        };
        passing(&self.name) || self.reasons().is_some_and(conflicts)
    }

    /// Whether the service refused the time of the signature.
    pub(crate) fn is_clock_skew(&self) -> bool {
        matches!(self.name.as_str(), "InvalidSignatureException" | "RequestTimeTooSkewed" | "RequestExpired")
    }

    /// The kind of the error for the caller.
    pub(crate) fn kind(&self, effect: Effect) -> StoreErrorKind {
        let message = self.body["message"].as_str().or(self.body["Message"].as_str()).unwrap_or_default();
        match self.name.as_str() {
            "ValidationException" if message.contains("size has exceeded") => StoreErrorKind::TooLarge,
            "ValidationException" | "SerializationException" => StoreErrorKind::Incompatible,
            "ItemCollectionSizeLimitExceededException" => StoreErrorKind::Full,
            "TransactionCanceledException" if self.is_invalid_item() => StoreErrorKind::Incompatible,
            // A server that failed may have failed after the write.
            _ if self.status >= 500 && effect == Effect::Write => StoreErrorKind::Unknown,
            _ => StoreErrorKind::Unavailable,
        }
    }

    pub(crate) fn error(self, op: &'static str, effect: Effect) -> StoreError {
        StoreError::new(self.kind(effect), op).with_source(self)
    }
}

impl fmt::Debug for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the body: it may hold items, which must not be logged.
        f.debug_struct("ServiceError")
            .field("status", &self.status)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "the service answered with HTTP status {}", self.status),
            name => write!(f, "the service answered {name}"),
        }
    }
}

impl Error for ServiceError {}

/// Why a call was refused or timed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    #[error("the service cannot be reached")]
    NotConnected,
    #[error("the service did not answer in time")]
    TimedOut,
    #[error("the connection broke before the reply came")]
    Lost,
    #[error("too many concurrent changes of the same record")]
    Contended,
    #[error("the record exists and cannot be read, so it is left unchanged")]
    Unreadable,
    #[error("the cursor is not from this store")]
    Cursor,
    #[error("the outcome is larger than outcome_bytes_max")]
    OutcomeTooLarge,
    #[error("the names in a scope may have at most 64 KiB together")]
    ScopeTooLarge,
    #[error("a transaction takes 99 items besides the record")]
    TooManyItems,
    #[error(
        "the attempt has not claimed its key through this store, or has ended; collect writes in the same store that \
         `Hapax` was made with"
    )]
    NotClaimed,
    #[error("the service sent an unexpected reply")]
    Reply,
}

impl CallFailure {
    pub(crate) fn error(self, op: &'static str, effect: Effect) -> StoreError {
        let kind = match (self, effect) {
            (Self::TimedOut | Self::Lost | Self::Reply, Effect::Write) => StoreErrorKind::Unknown,
            (Self::TimedOut | Self::Lost | Self::Reply, Effect::Read) => StoreErrorKind::Unavailable,
            (Self::NotConnected | Self::Contended, _) => StoreErrorKind::Unavailable,
            (Self::Unreadable, _) => StoreErrorKind::Incompatible,
            (Self::Cursor | Self::NotClaimed, _) => StoreErrorKind::Invalid,
            (Self::OutcomeTooLarge | Self::ScopeTooLarge | Self::TooManyItems, _) => StoreErrorKind::TooLarge,
        };
        StoreError::new(kind, op).with_source(self)
    }
}

#[cfg(test)]
mod tests;
