//! What can go wrong, and what it means for those who wait: driver error -> [`StoreErrorKind`], in one place.

use std::error::Error;
use std::fmt;

use hapax_core::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError};

/// Why a server cannot be used as a store; the source of the [`StoreError`] that
/// [`RedisStore::connect`](crate::RedisStore::connect) returns. Each says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is not one of a Redis server.
    Url {
        /// What is wrong with it. Never the URL itself: it may hold a password.
        why: String,
    },
    /// The server is a replica: it would answer that keys are absent which its primary has.
    Replica,
    /// The server is part of a cluster, and was not named as one.
    Cluster,
    /// The server was named as a member of a cluster, and is none.
    NotCluster,
    /// The server is older than what is needed.
    Version {
        /// What it says it is.
        found: String,
    },
    /// The server drops keys when it has no room, and an operation whose record is gone runs again.
    Evicts {
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// There are no records under this prefix.
    Missing {
        /// Which prefix.
        prefix: String,
    },
    /// The certificate of the authority cannot be read.
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

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { why } => write!(f, "the store's URL is wrong: {why}"),
            Self::Replica => f.write_str("the server is a replica; name the primary"),
            Self::Cluster => f.write_str(
                "the server is a member of a cluster; name it with redis+cluster:// or rediss+cluster://",
            ),
            Self::NotCluster => {
                f.write_str("the server is no member of a cluster; name it with redis:// or rediss://")
            }
            Self::Version { found } => {
                write!(f, "the server is Redis {found}, and 6.2 or newer is needed; upgrade it")
            }
            Self::Evicts { policy } => write!(
                f,
                "the server drops keys when its memory is full (maxmemory-policy {policy}), and a dropped record lets \
                 its operation run again; set maxmemory-policy noeviction, or accept that with evict=accept"
            ),
            Self::Missing { prefix } => write!(
                f,
                "there are no records under the prefix {prefix:?}; check the server, the database number and the prefix"
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
    /// The same, and what it makes may be new. Servers that evict are not asked for it.
    Claim,
}

/// What a driver's error means for the caller.
pub(crate) fn judge(error: &RedisError, effect: Effect) -> StoreErrorKind {
    use StoreErrorKind::{Full, Incompatible, Unavailable, Unknown};
    match code(error) {
        Some("OOM") => Full,
        Some("WRONGTYPE") => Incompatible,
        // The server says so before it does anything.
        Some(
            "LOADING" | "READONLY" | "MASTERDOWN" | "NOREPLICAS" | "MISCONF" | "BUSY" | "CLUSTERDOWN"
            | "TRYAGAIN" | "MOVED" | "ASK" | "NOAUTH" | "NOPERM" | "WRONGPASS" | "NOSCRIPT",
        ) => Unavailable,
        _ if effect == Effect::Read || error.kind() == ErrorKind::AuthenticationFailed => Unavailable,
        _ => Unknown,
    }
}

/// Whether the connection is of no use after this error: it is broken, or its server is no primary any more.
pub(crate) fn ends_connection(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_io_error()
        || matches!(code(error), Some("READONLY" | "NOAUTH"))
}

/// Whether a claim was refused by, or kept from, a server whose records are there to be read: one that evicts, or one whose
/// memory or disk is full.
pub(crate) fn leaves_records_readable(error: &StoreError) -> bool {
    let evicts =
        matches!(error.source().and_then(|source| source.downcast_ref()), Some(OpenError::Evicts { .. }));
    evicts || is_full(error)
}

/// Whether the server answered that it takes no new data at present, its memory or its disk being full. It still reads.
pub(crate) fn is_full(error: &StoreError) -> bool {
    matches!(code_of(error), Some("OOM" | "MISCONF"))
}

/// Whether the server answered that the key holds something other than a string.
pub(crate) fn is_wrong_type(error: &StoreError) -> bool {
    code_of(error) == Some("WRONGTYPE")
}

/// The code of the server's error behind an error of the store.
fn code_of(error: &StoreError) -> Option<&str> {
    error.source().and_then(|source| source.downcast_ref()).and_then(code)
}

/// What a script can run into. Before Redis 7 it is told in words, behind the code of scripts in general.
const IN_SCRIPTS: [&str; 5] = ["OOM ", "WRONGTYPE ", "READONLY ", "MISCONF ", "NOREPLICAS "];

/// The code of an error of the server.
fn code(error: &RedisError) -> Option<&str> {
    let said = error.detail().filter(|said| said.starts_with("Error running script"));
    let inner = said.and_then(|said| IN_SCRIPTS.into_iter().find(|code| said.contains(code)));
    inner.map(str::trim_end).or_else(|| error.code())
}

/// The server could not be looked at, and nothing was done.
pub(crate) fn unreachable(error: &RedisError) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error.clone())
}

/// Why a call was refused or given up, in words for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    TimedOut,
    Amnesia,
    Unreadable,
    Cursor,
    OutcomeTooLarge,
    ScopeTooLarge,
    TooFewReplicas,
    Reply,
    ClusterDown,
    NoOwner,
}

impl Refusal {
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the server did not answer in time",
            Self::Amnesia => {
                "the server has lost records: it was flushed, restored from an old copy or restarted without them, and \
                 operations could run again; look at what was lost, then start this process again to go on"
            }
            Self::Unreadable => "the record is there and cannot be read, so it is left as it is",
            Self::Cursor => "the cursor was not given by this store",
            Self::OutcomeTooLarge => "the outcome is larger than the store was told to take",
            Self::ScopeTooLarge => "the names in a scope may have 64 KiB together",
            Self::TooFewReplicas => "too few replicas have the write; it stands on the primary",
            Self::Reply => "the server answered with something that no script of ours says",
            Self::ClusterDown => "no member of the cluster says that the cluster is up",
            Self::NoOwner => "no member of the cluster has the record's slot",
        })
    }
}

impl Error for Refusal {}

#[cfg(test)]
mod tests;
