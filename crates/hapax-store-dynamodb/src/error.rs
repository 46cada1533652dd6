//! What can go wrong, and what it means for those who wait: the service's words -> [`StoreErrorKind`], in one place.

use std::error::Error;
use std::fmt;

use hapax_core::{StoreError, StoreErrorKind};
use serde_json::Value;

/// Why a table cannot be used as a store; the source of the [`StoreError`] that
/// [`DynamoDbStore::connect`](crate::DynamoDbStore::connect) returns. Each says what to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is not one of a table.
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// There is no such table.
    Missing {
        /// Which table.
        table: String,
    },
    /// The table is not one that this crate made: its key is another one.
    Shape {
        /// Which table.
        table: String,
    },
    /// The table has replicas in other Regions that accept writes of their own.
    Replicated {
        /// Which table.
        table: String,
    },
    /// Nobody said which credentials to use, or what was said cannot be used.
    Credentials {
        /// What was looked for and where. Never a secret.
        why: String,
    },
    /// TLS cannot be set up: the machine has no trusted certificates.
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

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { why } => write!(f, "the store's URL is wrong: {why}"),
            Self::Missing { table } => write!(
                f,
                "there is no table {table:?} in this Region; `hapax migrate` makes it, or check the name and the Region"
            ),
            Self::Shape { table } => write!(
                f,
                "the key of the table {table:?} is not one string called id; name another table, or make one with \
                 `hapax migrate`"
            ),
            Self::Replicated { table } => write!(
                f,
                "the table {table:?} has replicas in other Regions, and two Regions could both claim a key; use a table \
                 of one Region or one with strong consistency, or give every key one home Region and accept the rest \
                 with replicas=accept"
            ),
            Self::Credentials { why } => write!(f, "there are no credentials to use: {why}"),
            Self::Tls => f.write_str("TLS cannot be set up; install the system's trusted certificates"),
        }
    }
}

impl Error for OpenError {}

/// What a call could do before it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// It changes nothing.
    Read,
    /// It may have been applied once it was sent.
    Write,
}

/// An error that the service answered with.
#[derive(Clone, PartialEq)]
pub(crate) struct Answered {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Its name, without what stands before it on the wire.
    pub(crate) name: String,
    /// Everything that came with it.
    pub(crate) body: Value,
}

impl Answered {
    /// Reads an error's body, which may be anything at all.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let name = body["__type"].as_str().unwrap_or_default();
        let name = name.rsplit('#').next().unwrap_or_default().to_owned();
        Self { status, name, body }
    }

    /// Whether the condition of a write did not hold.
    pub(crate) fn is_condition(&self) -> bool {
        self.name == "ConditionalCheckFailedException"
    }

    /// Why each item of a transaction was refused, in the order of the items.
    pub(crate) fn reasons(&self) -> Option<&Vec<Value>> {
        (self.name == "TransactionCanceledException")
            .then(|| self.body["CancellationReasons"].as_array())
            .flatten()
    }

    /// Whether the service said that it did nothing and may do it soon.
    pub(crate) fn is_passing(&self) -> bool {
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

    /// Whether the service does not believe the moment of the signature.
    pub(crate) fn is_about_time(&self) -> bool {
        matches!(self.name.as_str(), "InvalidSignatureException" | "RequestTimeTooSkewed" | "RequestExpired")
    }

    /// What it means for the caller.
    pub(crate) fn judge(&self, effect: Effect) -> StoreErrorKind {
        let message = self.body["message"].as_str().or(self.body["Message"].as_str()).unwrap_or_default();
        match self.name.as_str() {
            "ValidationException" if message.contains("size has exceeded") => StoreErrorKind::TooLarge,
            "ValidationException" | "SerializationException" => StoreErrorKind::Incompatible,
            "ItemCollectionSizeLimitExceededException" => StoreErrorKind::Full,
            // A server that failed may have failed after it wrote.
            _ if self.status >= 500 && effect == Effect::Write => StoreErrorKind::Unknown,
            _ => StoreErrorKind::Unavailable,
        }
    }

    pub(crate) fn error(self, op: &'static str, effect: Effect) -> StoreError {
        StoreError::new(self.judge(effect), op).with_source(self)
    }
}

impl fmt::Debug for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the body: it may hold items, and they what must not reach a log.
        f.debug_struct("Answered")
            .field("status", &self.status)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "the service answered with HTTP status {}", self.status),
            name => write!(f, "the service answered {name}"),
        }
    }
}

impl Error for Answered {}

/// Why a call was refused or given up, in words for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    NotConnected,
    TimedOut,
    Lost,
    Contended,
    Unreadable,
    Cursor,
    OutcomeTooLarge,
    ScopeTooLarge,
    TooManyItems,
    Reply,
}

impl Refusal {
    pub(crate) fn error(self, op: &'static str, effect: Effect) -> StoreError {
        let kind = match (self, effect) {
            (Self::TimedOut | Self::Lost | Self::Reply, Effect::Write) => StoreErrorKind::Unknown,
            (Self::TimedOut | Self::Lost | Self::Reply, Effect::Read) => StoreErrorKind::Unavailable,
            (Self::NotConnected | Self::Contended, _) => StoreErrorKind::Unavailable,
            (Self::Unreadable, _) => StoreErrorKind::Incompatible,
            (Self::Cursor, _) => StoreErrorKind::Invalid,
            (Self::OutcomeTooLarge | Self::ScopeTooLarge | Self::TooManyItems, _) => StoreErrorKind::TooLarge,
        };
        StoreError::new(kind, op).with_source(self)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "the service cannot be reached",
            Self::TimedOut => "the service did not answer in time",
            Self::Lost => "the connection broke before the answer came",
            Self::Contended => "too many others change the same record at once",
            Self::Unreadable => "the record is there and cannot be read, so it is left as it is",
            Self::Cursor => "the cursor was not given by this store",
            Self::OutcomeTooLarge => "the outcome is larger than the store was told to take",
            Self::ScopeTooLarge => "the names in a scope may have 64 KiB together",
            Self::TooManyItems => "a transaction takes 99 items beside the record",
            Self::Reply => "the service answered with something that it never says",
        })
    }
}

impl Error for Refusal {}

#[cfg(test)]
mod tests;
