//! Errors: driver error -> [`Fault`] -> [`StoreErrorKind`], in one place.

use std::error::Error;

use hapax_core::{StoreError, StoreErrorKind};
use tokio_postgres::error::SqlState;

/// Why a server cannot be used as a store; the source of the [`StoreError`] that
/// [`PostgresStore::connect`](crate::PostgresStore::connect) returns. Each message says what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is not a valid store URL.
    #[error("the store's URL is wrong: {why}")]
    Url {
        /// What is wrong with it. Never the URL itself: it may hold a password.
        why: String,
    },
    /// The server is a standby: it may lack keys that its primary has.
    #[error("the server is a standby; name the primary")]
    Standby,
    /// The server, the database or the user is read-only.
    #[error("the database is read-only; name the primary, and a user with write permission")]
    ReadOnly,
    /// The server is older than the minimum version.
    #[error("the server is PostgreSQL {}.{}, and 12 or newer is needed; upgrade it", .found / 10_000, .found % 10_000)]
    Version {
        /// The version it reports: 150018 is 15.18.
        found: i32,
    },
    /// There is no store in this schema.
    #[error("there is no store in the schema {schema:?}; check the server, the database and the schema")]
    Missing {
        /// The schema.
        schema: String,
    },
    /// The tables are older than this program needs.
    #[error(
        "the tables have version {found} and this program needs version {}; run `hapax migrate`",
        crate::VERSION
    )]
    Outdated {
        /// Their version.
        found: i32,
    },
    /// The tables are too new for this program.
    #[error(
        "the tables have version {found}, which version {} does not support; upgrade this program",
        crate::VERSION
    )]
    TooNew {
        /// Their version.
        found: i32,
    },
    /// The certificate authority cannot be used.
    #[error("the certificate of the authority cannot be used: {why}")]
    Certificate {
        /// What is wrong with it.
        why: String,
    },
}

impl OpenError {
    fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Url { .. } => StoreErrorKind::Invalid,
            Self::Standby | Self::ReadOnly | Self::Missing { .. } | Self::Certificate { .. } => {
                StoreErrorKind::Unavailable
            }
            Self::Version { .. } | Self::Outdated { .. } | Self::TooNew { .. } => {
                StoreErrorKind::Incompatible
            }
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

/// A failed statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Not applied: another transaction was in the way. Alone, or later, it may succeed.
    Contended(ServerMessage),
    /// The connection broke and the result is unknown. Repeating the statement on another connection resolves it.
    Lost(ServerMessage),
    /// Not applied; the server refused it.
    Refused(StoreErrorKind, ServerMessage),
}

impl Fault {
    /// Classifies a driver's error.
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        Self::new(error.code(), ServerMessage::of(error))
    }

    /// Classifies an error of sqlx.
    #[cfg(feature = "sqlx")]
    pub(crate) fn of_sqlx(error: &sqlx::Error) -> Self {
        let state = error.as_database_error().and_then(|said| said.code());
        Self::new(state.map(|code| SqlState::from_code(&code)).as_ref(), ServerMessage::of_sqlx(error))
    }

    /// Without a state the error did not come from the server.
    fn new(state: Option<&SqlState>, message: ServerMessage) -> Self {
        let Some(state) = state else { return Self::Lost(message) };
        match state {
            &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::LOCK_NOT_AVAILABLE => Self::Contended(message),
            &SqlState::DISK_FULL => Self::Refused(StoreErrorKind::Full, message),
            &SqlState::UNDEFINED_TABLE
            | &SqlState::UNDEFINED_COLUMN
            | &SqlState::UNDEFINED_FUNCTION
            | &SqlState::INVALID_SCHEMA_NAME => Self::Refused(StoreErrorKind::Incompatible, message),
            &SqlState::QUERY_CANCELED => Self::Refused(StoreErrorKind::Unavailable, message),
            // A server that shuts down may have committed before it reported it; so may one that a pooler lost.
            state if ["08", "57", "58", "XX"].iter().any(|class| state.code().starts_with(class)) => {
                Self::Lost(message)
            }
            &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => Self::Lost(message),
            _ => Self::Refused(StoreErrorKind::Unavailable, message),
        }
    }

    /// The row exists and cannot be read.
    pub(crate) fn unreadable() -> Self {
        Self::Refused(StoreErrorKind::Incompatible, ServerMessage::words(CallFailure::Unreadable))
    }

    /// Whether the connection must be closed: it is broken, or its server is no longer the primary.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused(_, ServerMessage(text)) => {
                text.starts_with(SqlState::READ_ONLY_SQL_TRANSACTION.code())
            }
            Self::Contended(_) => false,
        }
    }

    /// Whether the statement timed out waiting for a locked row.
    pub(crate) fn is_wait_over(&self) -> bool {
        matches!(self, Self::Contended(ServerMessage(text)) if text.starts_with(SqlState::LOCK_NOT_AVAILABLE.code()))
    }

    /// The error for the caller.
    pub(crate) fn error(self, op: &'static str, effect: Effect) -> StoreError {
        let (kind, message) = match (self, effect) {
            (Self::Contended(message), _) | (Self::Lost(message), Effect::Read) => {
                (StoreErrorKind::Unavailable, message)
            }
            (Self::Lost(message), Effect::Write) => (StoreErrorKind::Unknown, message),
            (Self::Refused(kind, message), _) => (kind, message),
        };
        StoreError::new(kind, op).with_source(message)
    }
}

/// The message of the server or the driver with its code, never its details, which may hold a row.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ServerMessage(String);

impl ServerMessage {
    /// The message of a failure of our own.
    pub(crate) fn words(failure: CallFailure) -> Self {
        Self(failure.to_string())
    }

    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        Self(match error.as_db_error() {
            Some(said) => format!("{}: {}", said.code().code(), said.message()),
            None => match error.source() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
        })
    }

    #[cfg(feature = "sqlx")]
    fn of_sqlx(error: &sqlx::Error) -> Self {
        Self(match error.as_database_error() {
            Some(said) => format!("{}: {}", said.code().unwrap_or_default(), said.message()),
            None => error.to_string(),
        })
    }
}

/// Why a call was refused or timed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    #[error("the server did not answer in time")]
    TimedOut,
    #[error("too many calls wait for the server")]
    TooManyWait,
    #[error("another open transaction holds the record")]
    Held,
    #[error("the record exists and cannot be read, so it is left unchanged")]
    Unreadable,
    #[error("the server sent an unexpected reply")]
    Answer,
    #[error("the cursor is not from this store")]
    Cursor,
    #[error("the outcome is larger than outcome_bytes_max")]
    OutcomeTooLarge,
    #[error("the names in a scope may have at most 64 KiB together")]
    ScopeTooLarge,
    #[error("the attempt and its transaction have ended")]
    Ending,
    #[error(
        "the attempt has not claimed its key through this store, or has ended; give handlers the same store that \
         the layer or `Hapax` was made with"
    )]
    NotClaimed,
}

impl CallFailure {
    pub(crate) fn error(self, op: &'static str, effect: Effect) -> StoreError {
        let kind = match (self, effect) {
            (Self::TimedOut, Effect::Write) => StoreErrorKind::Unknown,
            (Self::TimedOut, Effect::Read) | (Self::TooManyWait | Self::Held, _) => {
                StoreErrorKind::Unavailable
            }
            (Self::Unreadable | Self::Answer, _) => StoreErrorKind::Incompatible,
            (Self::Cursor | Self::Ending | Self::NotClaimed, _) => StoreErrorKind::Invalid,
            (Self::OutcomeTooLarge | Self::ScopeTooLarge, _) => StoreErrorKind::TooLarge,
        };
        StoreError::new(kind, op).with_source(self)
    }
}
