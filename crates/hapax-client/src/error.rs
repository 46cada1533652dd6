//! [`Error`]: why a call has no final answer. Messages never contain a key; [`Error::key`] has it.

use std::error::Error as StdError;
use std::fmt;

use hapax_core::Key;
use http::StatusCode;

use crate::journal::JournalError;
use crate::problem::Problem;
use crate::response::Response;

/// Any error, as a source.
pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a call has no final answer.
///
/// After [`Uncertain`](Self::Uncertain), [`InProgress`](Self::InProgress) and [`Exhausted`](Self::Exhausted) keep the
/// [`key`](Self::key): the operation may have happened, and only the same key can be sent again without a second effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is unknown whether the operation happened. It must not be repeated with another key.
    #[error("the outcome is unknown: {cause}; keep the key")]
    #[non_exhaustive]
    Uncertain {
        /// The key of the call.
        key: Option<Key>,
        /// Why it is unknown.
        cause: UncertainCause,
        /// The id of the record at the server, if it named one.
        operation: Option<String>,
        /// The attempts of this call.
        attempts: u32,
        /// The failure of the last attempt.
        #[source]
        source: Option<BoxError>,
    },

    /// The service's idempotency layer refused the request, and would refuse it again.
    #[error("the request was refused ({status}): {problem}")]
    #[non_exhaustive]
    Refused {
        /// The key of the call.
        key: Option<Key>,
        /// The status.
        status: StatusCode,
        /// The refusal.
        problem: Box<Problem>,
    },

    /// The key was used for another request.
    #[error("the key was used for another request ({by})")]
    #[non_exhaustive]
    Mismatch {
        /// The key of the call.
        key: Option<Key>,
        /// Where the difference was found.
        by: MismatchFoundBy,
    },

    /// The operation was still running at the end of the call. The same key gets its response later.
    #[error("the operation was in progress at the end of the call ({limit}, attempts: {attempts})")]
    #[non_exhaustive]
    InProgress {
        /// The key of the call.
        key: Option<Key>,
        /// The limit that ended the call.
        limit: Limit,
        /// The attempts of this call.
        attempts: u32,
    },

    /// No attempt got a final answer, and no answer was lost: each attempt failed to connect, or was answered with a status,
    /// hint or problem that asks for a retry. Such an answer may come after an effect, as a 500 may, so keep the key here too.
    #[error("no final answer ({limit}, attempts: {attempts}): {last}")]
    #[non_exhaustive]
    Exhausted {
        /// The key of the call.
        key: Option<Key>,
        /// The limit that ended the call.
        limit: Limit,
        /// The attempts of this call.
        attempts: u32,
        /// The last attempt.
        #[source]
        last: Box<Last>,
    },

    /// The journal could not be written or read. Nothing was sent.
    #[error("the journal failed")]
    Journal(#[source] JournalError),

    /// The request is not valid. Nothing was sent.
    #[error("the request is not valid")]
    Request(#[source] BoxError),

    /// The final answer could not be read as the expected type.
    #[error("the response was not understood")]
    #[non_exhaustive]
    Decode {
        /// The key of the call.
        key: Option<Key>,
        /// What is wrong with it.
        #[source]
        source: BoxError,
    },

    /// The final answer is not a success.
    #[error("the service answered {}", .0.status())]
    Status(Box<Response>),
}

impl Error {
    /// The key of the call, if it had one and the error is about a call.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Uncertain { key, .. }
            | Self::Refused { key, .. }
            | Self::Mismatch { key, .. }
            | Self::InProgress { key, .. }
            | Self::Exhausted { key, .. }
            | Self::Decode { key, .. } => key.as_ref(),
            Self::Status(response) => response.key(),
            Self::Journal(_) | Self::Request(_) => None,
        }
    }

    pub(crate) fn request(source: impl Into<BoxError>) -> Self {
        Self::Request(source.into())
    }
}

/// Why it is unknown whether an operation happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UncertainCause {
    /// The server says so. A person settles it there; more attempts do not help.
    Server,
    /// A request may have been received, and the attempts ended without its answer. The same key can be sent again.
    Transport,
    /// The key is older than the server keeps its record, so it is not sent again.
    Lifetime,
}

impl fmt::Display for UncertainCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "the server does not know it",
            Self::Transport => "a request was sent and its answer was lost",
            Self::Lifetime => "the key is past its lifetime",
        })
    }
}

/// Where the reuse of a key for another request was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MismatchFoundBy {
    /// By the server.
    Server,
    /// By the journal, before anything was sent.
    Journal,
}

impl fmt::Display for MismatchFoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "found by the server",
            Self::Journal => "found in the journal, nothing was sent",
        })
    }
}

/// What ended the attempts of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Limit {
    /// The retries of the policy are used up.
    Retries,
    /// The retry budget of the client is used up.
    Budget,
    /// The deadline has passed, or the next pause would have reached it.
    Deadline,
    /// The next attempt would have been later than the key's lifetime.
    Lifetime,
    /// The body is a stream that cannot be sent again.
    OneShotBody,
    /// The request has an effect and no key.
    Unkeyed,
    /// The server said not to retry.
    Told,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Retries => "the retries are used up",
            Self::Budget => "the retry budget is used up",
            Self::Deadline => "the next attempt would be past the deadline",
            Self::Lifetime => "the next attempt would be past the lifetime of the key",
            Self::OneShotBody => "the body cannot be sent again",
            Self::Unkeyed => "the request has an effect and no key",
            Self::Told => "the server said not to retry",
        })
    }
}

/// The last attempt of a call without a final answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Last {
    /// A response that asks for a retry.
    Response(Response),
    /// A failure before a complete response.
    Failure(BoxError),
    /// The deadline had passed before the first attempt.
    Nothing,
}

impl fmt::Display for Last {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(response) => write!(f, "the service answered {}", response.status()),
            Self::Failure(_) => f.write_str("the attempt failed"),
            Self::Nothing => f.write_str("nothing was sent"),
        }
    }
}

impl StdError for Last {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Failure(source) => Some(&**source),
            Self::Response(_) | Self::Nothing => None,
        }
    }
}
