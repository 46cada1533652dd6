//! Every way in which a request is refused, as a problem.

use std::time::Duration;

use http::StatusCode;

use crate::engine::Refusal;
use crate::http::body::read::ReadFault;
use crate::http::digest::DigestMismatch;
use crate::http::fingerprint::BodyRefused;
use crate::http::key_source::FirstSentFault;
use crate::http::limits::LimitExceeded;
use crate::http::problem::{Code, Problem};
use crate::http::scope::PrincipalMissing;
use crate::observe;

/// When to retry at a process that is full or shutting down, or at a store that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why the engine executed nothing, or knows no outcome.
pub(super) fn of(refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::InProgress { retry_after, .. } => {
            Problem::of(Code::InProgress, "a request with this key is being processed")
                .retry_after(*retry_after)
        }
        Refusal::Mismatch => Problem::of(Code::KeyReused, "this key was used for another request"),
        Refusal::Expired => Problem::of(
            Code::KeyExpired,
            "this key is older than results are kept; it may have been used before",
        ),
        Refusal::Uncertain { .. } => Problem::of(
            Code::Uncertain,
            "it is unknown whether the operation happened; it will not run again until its record is settled",
        ),
        Refusal::Panicked { .. } => {
            Problem::of(Code::Uncertain, "the operation panicked; it is unknown how far it came")
                .with_status(StatusCode::INTERNAL_SERVER_ERROR)
        }
        Refusal::Unreadable { .. } => {
            Problem::of(Code::Uncertain, "there is a record of this key that cannot be read")
        }
        // This request has run: a layer in front must not take it for a duplicate that has not.
        Refusal::Superseded { .. } => {
            Problem::of(Code::InProgress, "another attempt took this operation over; ask for its result")
                .with_status(StatusCode::BAD_GATEWAY)
                .retry_after(RETRY_AFTER)
        }
        Refusal::Deadline { .. } => Problem::of(
            Code::InProgress,
            "there is no result yet; the operation goes on and will be recorded",
        )
        .with_status(StatusCode::GATEWAY_TIMEOUT)
        .retry_after(RETRY_AFTER),
        Refusal::Draining => {
            Problem::of(Code::Draining, "this server is shutting down").retry_after(RETRY_AFTER)
        }
        // The exact error is for logs: it may name hosts and folders.
        Refusal::StoreFailed(_) | Refusal::StoreFailedOnKnownKey(_) => {
            Problem::of(Code::StoreUnavailable, "nothing was executed").retry_after(RETRY_AFTER)
        }
    }
}

pub(super) fn result_unavailable() -> Problem {
    Problem::of(Code::ResultUnavailable, "the operation happened; its answer was not kept")
}

/// The service's answer was truncated.
pub(super) fn cut_short() -> Problem {
    Problem::of(Code::Uncertain, "the answer was truncated; it is unknown whether the operation happened")
        .with_status(StatusCode::BAD_GATEWAY)
}

pub(super) fn read(fault: ReadFault, bytes_max: usize) -> Problem {
    match fault {
        ReadFault::TooLarge => {
            Problem::of(Code::TooLarge, format!("a body with a key may have {bytes_max} bytes here"))
        }
        ReadFault::NoRoom => Problem::of(Code::Overloaded, "there is no room for more request bodies now")
            .retry_after(RETRY_AFTER),
        ReadFault::CutShort => Problem::of(Code::BodyIncomplete, "the body ended before its end"),
    }
}

pub(super) fn body(refused: BodyRefused) -> Problem {
    match refused {
        BodyRefused::TooLarge => Problem::of(Code::TooLarge, "the body is too large once it is decoded"),
        BodyRefused::CodingUnsupported => {
            Problem::of(Code::CodingUnsupported, "the body's content coding cannot be decoded here")
        }
        BodyRefused::Undecodable => {
            Problem::of(Code::CodingUnsupported, "the body is not what its content coding says")
        }
    }
}

pub(super) fn digest(_: DigestMismatch) -> Problem {
    Problem::of(Code::DigestMismatch, "the body does not have the digest that was sent with it")
}

pub(super) fn anonymous(missing: PrincipalMissing) -> Problem {
    let detail = match missing {
        PrincipalMissing::Anonymous => "a key is accepted from identified callers only",
        PrincipalMissing::Unnamed => "the authorisation of this caller does not name it",
        PrincipalMissing::OnlyCookie => {
            "the request has a cookie and no credential, so its caller cannot be told from others; name the \
             session cookie with `principal = \"cookie:NAME\"`, or say `principal = \"none\"`"
        }
    };
    Problem::of(Code::PrincipalMissing, detail)
}

pub(super) fn first_sent(fault: FirstSentFault) -> Problem {
    match fault {
        FirstSentFault::Invalid { .. } => Problem::of(Code::KeyInvalid, fault.detail()),
        FirstSentFault::OutsideWindow => {
            Problem::of(Code::KeyExpired, fault.detail()).with_status(StatusCode::PRECONDITION_FAILED)
        }
    }
}

pub(super) fn limited(limited: LimitExceeded) -> Problem {
    Problem::of(Code::RateLimited, limited.by.detail()).retry_after(limited.retry_after)
}

#[cfg(feature = "webhook")]
pub(super) fn webhook(fault: crate::http::webhook::WebhookFault) -> Problem {
    Problem::of(fault.code(), fault.detail())
}

/// Under which outcome a refused request is counted.
pub(super) fn counted_as(problem: &Problem) -> observe::OutcomeLabel {
    match problem.code {
        Code::InProgress if problem.status == Some(StatusCode::GATEWAY_TIMEOUT) => {
            observe::OutcomeLabel::Deadline
        }
        Code::InProgress => observe::OutcomeLabel::InProgress,
        Code::KeyReused => observe::OutcomeLabel::Mismatch,
        Code::Uncertain => observe::OutcomeLabel::Uncertain,
        Code::StoreUnavailable => observe::OutcomeLabel::StoreError,
        _ => observe::OutcomeLabel::Refused,
    }
}
