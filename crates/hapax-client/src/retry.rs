//! What an answer or a failure means for its call, and whether there is another attempt: is it safe, is it worth it?
//!
//! Pure functions. They know no connection, no clock and no journal.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

use crate::error::Limit;
use crate::policy::{self, RetryPolicy};
use crate::problem::{Meaning, Problem};

/// The marks of a replayed response: Hapax's own, and the one of Stripe and the IETF draft.
const REPLAY_MARKS: [&str; 2] = ["x-idempotent-replayed", "idempotent-replayed"];
/// The fields in which a server says whether to retry.
const HINTS: [&str; 2] = ["x-should-retry", "stripe-should-retry"];

/// What one attempt has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The answer of the service.
    Final,
    /// The same request may succeed later.
    Retry { after: Option<Duration> },
    /// The operation runs.
    InProgress { after: Option<Duration> },
    /// Not an answer, and the server says not to retry.
    ToldToStop,
    /// The server does not know whether the operation happened.
    Uncertain,
    /// The key was used for another request.
    Mismatch,
    /// The same request is refused again.
    Refused,
}

/// Whether these fields mark a replay.
pub(crate) fn is_replayed(headers: &HeaderMap) -> bool {
    REPLAY_MARKS.iter().any(|mark| word(headers, mark) == Some(true))
}

/// Whether an answer without a known type refuses the request as something in front of the operation does, such as a proxy
/// or a check of credentials. It says nothing about an earlier attempt.
pub(crate) fn is_refused_in_front(status: StatusCode, headers: &HeaderMap) -> bool {
    let is_told = || status.is_client_error() && hint(headers) == Some(false);
    let is_refused = status.is_redirection() || matches!(status.as_u16(), 401 | 403 | 407) || is_told();
    is_refused && !is_replayed(headers)
}

/// Statuses of which no type and no hint makes a retry: the request itself is at fault, or the caller's rights are.
pub(crate) fn is_never_retried(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 401 | 403 | 422)
}

/// Statuses with which a gateway answers in place of a service, whatever the service has done by then.
pub(crate) fn is_of_gateway(status: StatusCode) -> bool {
    matches!(status.as_u16(), 502 | 504)
}

/// Statuses of which the same request may succeed later.
fn is_retried(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// The meaning of a response. A replay is final whatever its status: every further retry would get it again.
pub(crate) fn of_response(
    status: StatusCode,
    headers: &HeaderMap,
    problem: Option<&Problem>,
    now: SystemTime,
) -> Verdict {
    if is_replayed(headers) {
        return Verdict::Final;
    }
    let (after, hint) = (retry_after(headers, now), hint(headers));
    match problem.and_then(Problem::meaning) {
        Some(Meaning::Uncertain) => Verdict::Uncertain,
        Some(Meaning::Mismatch) => Verdict::Mismatch,
        Some(Meaning::Refused) => Verdict::Refused,
        Some(_) if is_never_retried(status) => Verdict::Refused,
        Some(_) if hint == Some(false) => Verdict::ToldToStop,
        Some(Meaning::InProgress) => Verdict::InProgress { after },
        Some(Meaning::Later) => Verdict::Retry { after },
        None => of_status(status, hint, after),
    }
}

/// The meaning of a response of which nothing but the status and the retry fields is understood.
fn of_status(status: StatusCode, hint: Option<bool>, after: Option<Duration>) -> Verdict {
    let is_failure = status.is_client_error() || status.is_server_error();
    if !is_failure || is_never_retried(status) {
        return Verdict::Final;
    }
    match hint {
        // Hapax says this of a first answer that left its record uncertain (E-05).
        Some(false) if status.is_server_error() => Verdict::ToldToStop,
        Some(false) => Verdict::Final,
        // A conflict of the service's own comes without advice on when to retry.
        _ if status == StatusCode::CONFLICT && (after.is_some() || hint == Some(true)) => {
            Verdict::InProgress { after }
        }
        Some(true) => Verdict::Retry { after },
        None if is_retried(status) => Verdict::Retry { after },
        None => Verdict::Final,
    }
}

fn hint(headers: &HeaderMap) -> Option<bool> {
    HINTS.iter().find_map(|name| word(headers, name))
}

/// `true` or `false`; other values are ignored.
fn word(headers: &HeaderMap, name: &str) -> Option<bool> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    [true, false].into_iter().find(|word| value.eq_ignore_ascii_case(&word.to_string()))
}

/// `Retry-After` in seconds or as a date; other values are ignored. A date in the past is no wait.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than fit are longer than every deadline.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Why an attempt is followed by another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Again {
    /// A retry: counted, and paid from the budget.
    Retry,
    /// The operation runs, and its response is asked for again. Bounded by the deadline only.
    Poll,
}

/// All that the decision on another attempt depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) policy: &'a RetryPolicy,
    /// What forbids to send the request again at all.
    pub(crate) unrepeatable: Option<Limit>,
    /// Earlier attempts of the same kind.
    pub(crate) earlier: u32,
    /// The rest of the deadline.
    pub(crate) time_left: Duration,
    /// The rest of the key's lifetime; infinite without a key.
    pub(crate) lifetime_left: Duration,
    /// Uniform over its type.
    pub(crate) random: u64,
}

/// The pause before the next attempt, or the limit that ends the call. A pause that would reach the deadline ends it at
/// once.
pub(crate) fn next(
    again: Again,
    after: Option<Duration>,
    situation: &Situation<'_>,
) -> Result<Duration, Limit> {
    if let Some(limit) = situation.unrepeatable {
        return Err(limit);
    }
    if again == Again::Retry && situation.earlier >= situation.policy.retries_max {
        return Err(Limit::Retries);
    }
    let jittered = situation.policy.pause(situation.earlier, situation.random);
    let pause = match (again, after) {
        // The server says when the response may be there; one caller asks. No wait at all would be a busy loop.
        (Again::Poll, Some(after)) if !after.is_zero() => after,
        (Again::Poll, _) => policy::poll_pause(jittered),
        // All callers of a failed server get the same time: jitter keeps them apart.
        (Again::Retry, Some(after)) => after.saturating_add(jittered),
        (Again::Retry, None) => jittered,
    };
    if pause < situation.time_left.min(situation.lifetime_left) {
        return Ok(pause);
    }
    Err(if situation.lifetime_left <= situation.time_left { Limit::Lifetime } else { Limit::Deadline })
}

#[cfg(test)]
mod tests;
