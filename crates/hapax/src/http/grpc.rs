//! gRPC: the status is in the trailers, and a refusal is a Trailers-Only response.
//!
//! This file has gRPC's status codes and fields. The table of refusals maps codes to them.

use std::fmt::Write as _;

use bytes::Bytes;
use hapax_core::Class;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::canonical::header;
use super::classify::{Outcome, Outcomes, override_or};
use super::problem::Problem;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
/// A client does not retry if the pushback is negative.
const NEVER: HeaderValue = HeaderValue::from_static("-1");

/// The status codes of gRPC, in the order of their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrpcStatus {
    /// It succeeded.
    Ok,
    /// It was cancelled, by its caller or on the way.
    Cancelled,
    /// An unspecified error, such as an exception of the handler.
    Unknown,
    /// The request is invalid, independent of the state of the system.
    InvalidArgument,
    /// The deadline passed before it was complete.
    DeadlineExceeded,
    /// The resource does not exist.
    NotFound,
    /// The resource to create exists already.
    AlreadyExists,
    /// The caller is not permitted to do this.
    PermissionDenied,
    /// A quota or a capacity is exhausted.
    ResourceExhausted,
    /// The system is not in the required state.
    FailedPrecondition,
    /// It was aborted, often by a conflict with another call.
    Aborted,
    /// The operation is out of the valid range.
    OutOfRange,
    /// The method is not implemented.
    Unimplemented,
    /// An invariant is broken.
    Internal,
    /// The service is not available at the moment.
    Unavailable,
    /// Data is lost or damaged.
    DataLoss,
    /// The caller is not authenticated.
    Unauthenticated,
}

impl GrpcStatus {
    /// Every status.
    pub const ALL: [Self; 17] = [
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

    /// The numeric status code.
    pub(crate) const fn number(self) -> i32 {
        self as i32
    }

    /// Its name in gRPC.
    pub const fn name(self) -> &'static str {
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

    /// The status with this name, in any case.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name().eq_ignore_ascii_case(name))
    }

    /// The outcome unless a route overrides it. An error of the request or the resource persists, so it is final. A
    /// status about the call and not the operation is uncertain: the component that set it, from a library to a
    /// gateway, ended the call without the result of the operation. The others ask for another attempt.
    pub(crate) const fn usual_outcome(self) -> Outcome {
        match self {
            Self::Ok
            | Self::InvalidArgument
            | Self::NotFound
            | Self::AlreadyExists
            | Self::FailedPrecondition
            | Self::OutOfRange
            | Self::Unimplemented
            | Self::DataLoss => Outcome::Pin,
            Self::Cancelled | Self::Unknown | Self::DeadlineExceeded => Outcome::Uncertain,
            Self::PermissionDenied
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

/// Whether the message is native gRPC: `application/grpc`, with a suffix or parameters. gRPC-Web is not; it has its
/// trailers in the body.
pub(crate) fn is_grpc(content_type: Option<&HeaderValue>) -> bool {
    const ESSENCE: &[u8] = b"application/grpc";
    let Some(content_type) = content_type.map(HeaderValue::as_bytes) else { return false };
    content_type.split_at_checked(ESSENCE.len()).is_some_and(|(essence, rest)| {
        essence.eq_ignore_ascii_case(ESSENCE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
    })
}

/// Removes the caller's deadline from a claimed call: the execution outlives its caller, and a server that cut it short
/// would leave an uncertain record.
pub(crate) fn lift_deadline(headers: &mut HeaderMap) {
    if header::first(headers, &TIMEOUT).is_some() && is_grpc(header::first(headers, &CONTENT_TYPE)) {
        headers.remove(TIMEOUT);
    }
}

/// The outcome of a gRPC response: by its status in the trailers, or in the header of a Trailers-Only response.
///
/// `None` if it is not a gRPC response, which is classified by the HTTP status. A response without a status was cut
/// short, or is too large to be read up to its trailers, and one with an unknown status cannot be classified: these are
/// uncertain, unless overridden by the handler or the origin.
pub(crate) fn outcome(
    outcomes: &Outcomes,
    parts: &Parts,
    trailers: Option<&HeaderMap>,
) -> Option<(Outcome, Class)> {
    if !is_grpc(header::first(&parts.headers, &CONTENT_TYPE)) {
        return None;
    }
    let value = trailers.and_then(|trailers| trailers.get(STATUS)).or_else(|| parts.headers.get(STATUS));
    if value.is_none() && parts.status != StatusCode::OK {
        return None;
    }
    let (outcome, class) = match value.and_then(GrpcStatus::read) {
        Some(status) => (outcomes.of_grpc(status), status.class()),
        None => (Outcome::Uncertain, Class::Error),
    };
    Some((override_or(parts, outcome), class))
}

/// Whether the response has a gRPC status of a failed call.
pub(crate) fn is_failed(headers: &HeaderMap, trailers: Option<&HeaderMap>) -> bool {
    let value = trailers.and_then(|trailers| trailers.get(STATUS)).or_else(|| headers.get(STATUS));
    value.is_some_and(|value| GrpcStatus::read(value) != Some(GrpcStatus::Ok))
}

/// Forbids automatic retries by the client, next to the status of the call. False if there is none: it is not a gRPC
/// response.
pub(crate) fn forbid_retries(headers: &mut HeaderMap, trailers: Option<&mut HeaderMap>) -> bool {
    let place = match trailers {
        Some(trailers) if trailers.contains_key(STATUS) => trailers,
        _ if headers.contains_key(STATUS) => headers,
        _ => return false,
    };
    place.insert(PUSHBACK, NEVER);
    true
}

/// A refusal as a gRPC response: HTTP 200, no body, all fields in the header.
///
/// The pushback field gives clients with automatic retries the delay, or a negative number that forbids the retry.
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
        None => NEVER,
    };
    headers.insert(PUSHBACK, pushback);
    response.extensions_mut().insert(problem.code);
    response
}

/// The percent-encoding of gRPC: UTF-8 with the percent sign and everything but printable ASCII escaped.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | ..b' ' | b'\x7f'.. => {
                write!(encoded, "%{byte:02X}").expect("writing to a string does not fail")
            }
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
