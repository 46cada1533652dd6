//! What can go wrong, and what it means for those who wait: driver error -> [`Fault`] -> [`StoreErrorKind`], in one
//! place.

use std::error::Error;
use std::fmt;

use hapax_core::{StoreError, StoreErrorKind};
use tokio_postgres::error::SqlState;

/// Why a server cannot be used as a store; the source of the [`StoreError`] that
/// [`PostgresStore::connect`](crate::PostgresStore::connect) returns. Each says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is not one of a PostgreSQL server.
    Url {
        /// What is wrong with it. Never the URL itself: it may hold a password.
        why: String,
    },
    /// The server is a standby: it would answer that keys are absent which its primary has.
    Standby,
    /// The server, the database or the user may only read.
    ReadOnly,
    /// The server is older than what is needed.
    Version {
        /// What it says it is: 150018 is 15.18.
        found: i32,
    },
    /// There is no store in this schema.
    Missing {
        /// Which schema.
        schema: String,
    },
    /// The tables are older than what this program needs.
    Outdated {
        /// Their version.
        found: i32,
    },
    /// The tables are so new that this program may not use them.
    TooNew {
        /// Their version.
        found: i32,
    },
    /// The certificate of the authority cannot be used.
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

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { why } => write!(f, "the store's URL is wrong: {why}"),
            Self::Standby => f.write_str("the server is a standby; name the primary"),
            Self::ReadOnly => {
                f.write_str("nothing may be written there; name the primary, and a user who may write")
            }
            Self::Version { found } => {
                let (major, minor) = (found / 10_000, found % 10_000);
                write!(f, "the server is PostgreSQL {major}.{minor}, and 12 or newer is needed; upgrade it")
            }
            Self::Missing { schema } => write!(
                f,
                "there is no store in the schema {schema:?}; check the server, the database and the schema"
            ),
            Self::Outdated { found } => write!(
                f,
                "the tables are of version {found} and this program needs version {}; run `hapax migrate`",
                crate::VERSION
            ),
            Self::TooNew { found } => write!(
                f,
                "the tables are of version {found}, with which version {} cannot work; upgrade this program",
                crate::VERSION
            ),
            Self::Certificate { why } => write!(f, "the certificate of the authority cannot be used: {why}"),
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

/// What a failed statement means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Not applied: somebody else's transaction was in the way. Alone, or later, it may succeed.
    Contended(Told),
    /// The connection broke and nobody knows. The same statement on another one tells.
    Lost(Told),
    /// Not applied, and for a reason.
    Refused(StoreErrorKind, Told),
}

impl Fault {
    /// What a driver's error means.
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        Self::new(error.code(), Told::of(error))
    }

    /// The same for an error of sqlx.
    #[cfg(feature = "sqlx")]
    pub(crate) fn of_sqlx(error: &sqlx::Error) -> Self {
        let state = error.as_database_error().and_then(|said| said.code());
        Self::new(state.map(|code| SqlState::from_code(&code)).as_ref(), Told::of_sqlx(error))
    }

    /// Without a state it is not the server that speaks.
    fn new(state: Option<&SqlState>, told: Told) -> Self {
        let Some(state) = state else { return Self::Lost(told) };
        match state {
            &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::LOCK_NOT_AVAILABLE => Self::Contended(told),
            &SqlState::DISK_FULL => Self::Refused(StoreErrorKind::Full, told),
            &SqlState::UNDEFINED_TABLE
            | &SqlState::UNDEFINED_COLUMN
            | &SqlState::UNDEFINED_FUNCTION
            | &SqlState::INVALID_SCHEMA_NAME => Self::Refused(StoreErrorKind::Incompatible, told),
            &SqlState::QUERY_CANCELED => Self::Refused(StoreErrorKind::Unavailable, told),
            // A server that is shut down may have committed before it said so; so may one that a pooler lost.
            state if ["08", "57", "58", "XX"].iter().any(|class| state.code().starts_with(class)) => {
                Self::Lost(told)
            }
            &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => Self::Lost(told),
            _ => Self::Refused(StoreErrorKind::Unavailable, told),
        }
    }

    /// The row is there and cannot be read.
    pub(crate) fn unreadable() -> Self {
        Self::Refused(StoreErrorKind::Incompatible, Told::words(Refusal::Unreadable))
    }

    /// Whether the connection is of no use any more: it is broken, or its server is no primary any more.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused(_, Told(text)) => text.starts_with(SqlState::READ_ONLY_SQL_TRANSACTION.code()),
            Self::Contended(_) => false,
        }
    }

    /// Whether the row was somebody else's for as long as the statement would wait.
    pub(crate) fn is_wait_over(&self) -> bool {
        matches!(self, Self::Contended(Told(text)) if text.starts_with(SqlState::LOCK_NOT_AVAILABLE.code()))
    }

    /// What a caller is told.
    pub(crate) fn error(self, op: &'static str, effect: Effect) -> StoreError {
        let (kind, told) = match (self, effect) {
            (Self::Contended(told), _) | (Self::Lost(told), Effect::Read) => {
                (StoreErrorKind::Unavailable, told)
            }
            (Self::Lost(told), Effect::Write) => (StoreErrorKind::Unknown, told),
            (Self::Refused(kind, told), _) => (kind, told),
        };
        StoreError::new(kind, op).with_source(told)
    }
}

/// What the server or the driver said: its code and its message, never its details, which may hold a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Told(String);

impl Told {
    /// The same words as a refusal of our own.
    pub(crate) fn words(refusal: Refusal) -> Self {
        Self(refusal.to_string())
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

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Told {}

/// Why a call was refused or given up, in words for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    TimedOut,
    TooManyWait,
    Held,
    Unreadable,
    Answer,
    Cursor,
    OutcomeTooLarge,
    ScopeTooLarge,
    Ending,
    NotClaimed,
}

impl Refusal {
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the server did not answer in time",
            Self::TooManyWait => "too many calls wait for the server",
            Self::Held => "somebody's open transaction holds the record",
            Self::Unreadable => "the record is there and cannot be read, so it is left as it is",
            Self::Answer => "the server answered with something else than it was asked for",
            Self::Cursor => "the cursor was not given by this store",
            Self::OutcomeTooLarge => "the outcome is larger than the store was told to take",
            Self::Ending => "the attempt has ended, and its transaction with it",
            Self::NotClaimed => {
                "the attempt has not claimed its key by this store, or has ended; give handlers the very store that \
                 the layer or `Hapax` was made with"
            }
            Self::ScopeTooLarge => "the names in a scope may have 64 KiB together",
        })
    }
}

impl Error for Refusal {}
