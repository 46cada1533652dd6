//! gRPC: the status is in the trailers, and a refusal is an answer of nothing but trailers.
//!
//! This file knows gRPC's numbers and fields. Which code has which number is said in the table of refusals.

use std::fmt::Write as _;

use bytes::Bytes;
use hapax_core::Class;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::canonical::header;
use super::classify::{Outcome, overruled};
use super::problem::Problem;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The status codes of gRPC, in the order of their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ok,
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl Status {
    const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The number on the wire.
    pub(crate) const fn number(self) -> i32 {
        self as i32
    }

    /// The name that gRPC has for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    fn read(value: &HeaderValue) -> Option<Self> {
        let number: usize = value.to_str().ok()?.parse().ok()?;
        Self::ALL.get(number).copied()
    }

    /// What is true of the request or the resource stays true, so it is final. The rest asks for another attempt.
    const fn outcome(self) -> Outcome {
        match self {
            Self::Ok
            | Self::InvalidArgument
            | Self::NotFound
            | Self::AlreadyExists
            | Self::FailedPrecondition
            | Self::OutOfRange
            | Self::Unimplemented
            | Self::DataLoss => Outcome::Pin,
            Self::Cancelled
            | Self::Unknown
            | Self::DeadlineExceeded
            | Self::PermissionDenied
            | Self::ResourceExhausted
            | Self::Aborted
            | Self::Internal
            | Self::Unavailable
            | Self::Unauthenticated => Outcome::Release,
        }
    }

    const fn class(self) -> Class {
        match self {
            Self::Ok => Class::Success,
            _ => Class::Error,
        }
    }
}

/// Whether the message is one of gRPC itself: `application/grpc`, with a suffix or parameters. gRPC-Web is not; it
/// hides its trailers in the body.
pub(crate) fn is_grpc(content_type: Option<&HeaderValue>) -> bool {
    const ESSENCE: &[u8] = b"application/grpc";
    let Some(content_type) = content_type.map(HeaderValue::as_bytes) else { return false };
    content_type.split_at_checked(ESSENCE.len()).is_some_and(|(essence, rest)| {
        essence.eq_ignore_ascii_case(ESSENCE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
    })
}

/// The table as it is published: every status and what it means.
pub(crate) fn published() -> impl Iterator<Item = (&'static str, Outcome)> {
    Status::ALL.into_iter().map(|status| (status.name(), status.outcome()))
}

/// What a gRPC answer means: by its status in the trailers, or in the head when there is nothing else.
///
/// None when it is no gRPC answer, which is left to the HTTP status. An answer without a status was cut short, or is too
/// large to be read up to its trailers, and one with a status that gRPC does not have cannot be understood: all of them
/// are uncertain, unless the handler or the origin said what they are.
pub(crate) fn outcome(parts: &Parts, trailers: Option<&HeaderMap>) -> Option<(Outcome, Class)> {
    if !is_grpc(header::first(&parts.headers, &CONTENT_TYPE)) {
        return None;
    }
    let value = trailers.and_then(|trailers| trailers.get(STATUS)).or_else(|| parts.headers.get(STATUS));
    if value.is_none() && parts.status != StatusCode::OK {
        return None;
    }
    let (outcome, class) = match value.and_then(Status::read) {
        Some(status) => (status.outcome(), status.class()),
        None => (Outcome::Uncertain, Class::Error),
    };
    Some((overruled(parts, outcome), class))
}

/// A refusal as gRPC says it: HTTP 200, no body, everything in the head.
///
/// A client that retries by itself is told when, or by a negative number that it must not.
pub(crate) fn refusal(problem: &Problem) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(STATUS, HeaderValue::from(problem.code.grpc()));
    let message = format!("{}: {}", problem.code.name(), problem.detail);
    if let Ok(message) = HeaderValue::try_from(percent_encoded(&message)) {
        headers.insert(MESSAGE, message);
    }
    let pushback = match problem.wait() {
        Some(wait) => HeaderValue::from(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        None => HeaderValue::from_static("-1"),
    };
    headers.insert(PUSHBACK, pushback);
    response.extensions_mut().insert(problem.code);
    response
}

/// As gRPC wants it: UTF-8 with everything but printable ASCII, and the percent sign, escaped.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | ..b' ' | b'\x7f'.. => write!(encoded, "%{byte:02X}").expect("a string takes everything"),
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
