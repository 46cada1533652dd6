//! Errors: maps driver errors to [`StoreErrorKind`] in one place.

use std::error::Error;

use hapax_core::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError};

/// Why a server cannot be used as a store; the source of the [`StoreError`] that
/// [`RedisStore::connect`](crate::RedisStore::connect) returns. Each message says what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is not a valid store URL.
    #[error("the store's URL is wrong: {why}")]
    Url {
        /// What is wrong with it. Never the URL itself: it may hold a password.
        why: String,
    },
    /// The server is a replica: it may lack keys that its primary has.
    #[error("the server is a replica; name the primary")]
    Replica,
    /// The server is a cluster member and was not named as one.
    #[error("the server is a member of a cluster; name it with redis+cluster:// or rediss+cluster://")]
    Cluster,
    /// The server was named as a cluster member and is not one.
    #[error("the server is no member of a cluster; name it with redis:// or rediss://")]
    NotCluster,
    /// The server is older than the minimum version.
    #[error("the server is Redis {found}, and 6.2 or newer is needed; upgrade it")]
    Version {
        /// The version it reports.
        found: String,
    },
    /// The server evicts keys when its memory is full, and an operation whose record is gone runs again.
    #[error(
        "the server drops keys when its memory is full (maxmemory-policy {policy}), and a dropped record lets \
         its operation run again; set maxmemory-policy noeviction, or accept that with evict=accept"
    )]
    Evicts {
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// There are no records under this prefix.
    #[error(
        "there are no records under the prefix {prefix:?}; check the server, the database number and the prefix"
    )]
    Missing {
        /// The prefix.
        prefix: String,
    },
    /// The certificate authority cannot be read.
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
            Self::Replica | Self::Missing { .. } | Self::Certificate { .. } => StoreErrorKind::Unavailable,
            Self::Cluster | Self::NotCluster | Self::Version { .. } | Self::Evicts { .. } => {
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
    /// Like a write, and it may create a record. Not sent to servers that evict keys.
    Claim,
}

/// The kind of a driver's error, given what the call may have changed.
pub(crate) fn classify_error(error: &RedisError, effect: Effect) -> StoreErrorKind {
    use StoreErrorKind::{Full, Incompatible, Unavailable, Unknown};
    match code(error) {
        Some("OOM") => Full,
        Some("WRONGTYPE") => Incompatible,
        // The server refuses before it executes anything.
        Some(
            "LOADING" | "READONLY" | "MASTERDOWN" | "NOREPLICAS" | "MISCONF" | "BUSY" | "CLUSTERDOWN"
            | "TRYAGAIN" | "MOVED" | "ASK" | "NOAUTH" | "NOPERM" | "WRONGPASS" | "NOSCRIPT",
        ) => Unavailable,
        _ if effect == Effect::Read || error.kind() == ErrorKind::AuthenticationFailed => Unavailable,
        _ => Unknown,
    }
}

/// Whether the connection must be closed after this error: it is broken, or its server is no longer the primary.
pub(crate) fn ends_connection(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_io_error()
        || matches!(code(error), Some("READONLY" | "NOAUTH"))
}

/// Whether a claim was refused by a server whose records can still be read: one that evicts keys, or whose memory or disk is
/// full.
pub(crate) fn leaves_records_readable(error: &StoreError) -> bool {
    let evicts =
        matches!(error.source().and_then(|source| source.downcast_ref()), Some(OpenError::Evicts { .. }));
    evicts || is_full(error)
}

/// Whether the server refuses writes at present because its memory or disk is full. Reads still work.
pub(crate) fn is_full(error: &StoreError) -> bool {
    matches!(code_of(error), Some("OOM" | "MISCONF"))
}

/// Whether the key holds another type than a string.
pub(crate) fn is_wrong_type(error: &StoreError) -> bool {
    code_of(error) == Some("WRONGTYPE")
}

/// The code of the server's error behind a store error.
fn code_of(error: &StoreError) -> Option<&str> {
    error.source().and_then(|source| source.downcast_ref()).and_then(code)
}

/// Errors inside scripts. Before Redis 7 the server puts them into the message of a generic script error.
const IN_SCRIPTS: [&str; 5] = ["OOM ", "WRONGTYPE ", "READONLY ", "MISCONF ", "NOREPLICAS "];

/// The code of the server's error.
fn code(error: &RedisError) -> Option<&str> {
    let said = error.detail().filter(|said| said.starts_with("Error running script"));
    let inner = said.and_then(|said| IN_SCRIPTS.into_iter().find(|code| said.contains(code)));
    inner.map(str::trim_end).or_else(|| error.code())
}

/// The server could not be probed, and nothing was done.
pub(crate) fn unreachable(error: &RedisError) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error.clone())
}

/// Why a call was refused or timed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    #[error("the server did not answer in time")]
    TimedOut,
    #[error(
        "the server has lost records: it was flushed, restored from an old copy or restarted without them, and \
         operations could run again; find out what was lost, then restart this process to go on"
    )]
    Amnesia,
    #[error("the record exists and cannot be read, so it is left unchanged")]
    Unreadable,
    #[error("the cursor is not from this store")]
    Cursor,
    #[error("the outcome is larger than outcome_bytes_max")]
    OutcomeTooLarge,
    #[error("the names in a scope may have at most 64 KiB together")]
    ScopeTooLarge,
    #[error("too few replicas have the write; it stands on the primary")]
    TooFewReplicas,
    #[error("the server sent an unexpected reply")]
    Reply,
    #[error("no member of the cluster reports that the cluster is up")]
    ClusterDown,
    #[error("no member of the cluster owns the record's slot")]
    NoOwner,
}

impl CallFailure {
    pub(crate) fn error(self, op: &'static str, effect: Effect) -> StoreError {
        let kind = match (self, effect) {
            (Self::TimedOut | Self::TooFewReplicas | Self::Reply, Effect::Read) => {
                StoreErrorKind::Unavailable
            }
            (Self::TimedOut | Self::TooFewReplicas | Self::Reply, Effect::Write | Effect::Claim) => {
                StoreErrorKind::Unknown
            }
            // Nothing was sent.
            (Self::ClusterDown | Self::NoOwner, _) => StoreErrorKind::Unavailable,
            (Self::Amnesia, _) => StoreErrorKind::Stopped,
            (Self::Unreadable, _) => StoreErrorKind::Incompatible,
            (Self::Cursor, _) => StoreErrorKind::Invalid,
            (Self::OutcomeTooLarge | Self::ScopeTooLarge, _) => StoreErrorKind::TooLarge,
        };
        StoreError::new(kind, op).with_source(self)
    }
}

#[cfg(test)]
mod tests;
