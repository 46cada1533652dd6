//! The outcome of a response for its key: pin, release or uncertain. One table by status, and the overrides.
//!
//! This file reads HTTP statuses, gRPC statuses by name, and `Idempotency-Outcome`. It does not record outcomes, and it
//! does not handle transport failures: a response that never arrived completely is uncertain, independent of its
//! status.

use std::fmt;
use std::str::FromStr;

use hapax_core::{Class, Reason};
use http::response::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::canonical::header;
use super::grpc::GrpcStatus;
use super::problem;

/// The response field with which an origin overrides the table. It is removed before the response is sent to the
/// client.
const OUTCOME: HeaderName = HeaderName::from_static("idempotency-outcome");

/// The field with which an origin of the `adyen` dialect asks for a retry.
const TRANSIENT_ERROR: HeaderName = HeaderName::from_static("transient-error");

/// The statuses of a gateway that cannot tell whether the service behind it ran the request: its connection broke, or
/// no response arrived in time.
const GATEWAY: [usize; 2] = [502, 504];

/// The outcome of a response for its key.
///
/// The route's table decides by status. A handler overrides it by adding this type to the extensions of its response;
/// an origin in another process responds with `Idempotency-Outcome: pin`, `release` or `uncertain`. A service that has
/// the cause of an uncertain outcome, such as a proxy whose connection broke, adds a [`Reason`](hapax_core::Reason) to
/// the extensions.
///
/// ```
/// use hapax::http::Outcome;
///
/// let mut response = http::Response::new("out of stock, ask again tomorrow");
/// response.extensions_mut().insert(Outcome::Release);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Final: every retry gets this response.
    Pin,
    /// Not final: a retry runs the operation again.
    Release,
    /// It is unknown whether the operation happened. It does not run again until its record is settled.
    Uncertain,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Pin, Self::Release, Self::Uncertain];

    /// Its name in `Idempotency-Outcome`, in settings and in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::Release => "release",
            Self::Uncertain => "uncertain",
        }
    }

    fn from_word(word: &[u8]) -> Option<Self> {
        let word = word.trim_ascii();
        Self::ALL.into_iter().find(|outcome| word.eq_ignore_ascii_case(outcome.name().as_bytes()))
    }

    /// The outcome if the origin's override is invalid: the origin may have meant to pin, so the key is not released.
    const fn with_invalid_override(self) -> Self {
        match self {
            Self::Pin => Self::Pin,
            Self::Release | Self::Uncertain => Self::Uncertain,
        }
    }
}

/// One status, or one class of statuses: `404`, `5xx`, and `UNAVAILABLE` on gRPC routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusSet {
    /// One status.
    One(StatusCode),
    /// All statuses with this first digit, 2 to 5.
    Class(u16),
    /// One status of gRPC.
    Grpc(GrpcStatus),
}

impl StatusSet {
    /// Whether this set contains all of the other.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Class(digit), Self::One(status)) => status.as_u16() / 100 == *digit,
            _ => self == other,
        }
    }
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<Self, StatusSetError> {
        let refused = || StatusSetError { text: text.chars().take(StatusSetError::CHARS_MAX).collect() };
        if let Some(status) = GrpcStatus::from_name(text) {
            return Ok(Self::Grpc(status));
        }
        let [first @ b'2'..=b'5', rest @ ..] = text.as_bytes() else { return Err(refused()) };
        if rest.eq_ignore_ascii_case(b"xx") {
            return Ok(Self::Class(u16::from(first - b'0')));
        }
        StatusCode::from_bytes(text.as_bytes()).map(Self::One).map_err(|_| refused())
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(status) => f.write_str(status.as_str()),
            Self::Class(digit) => write!(f, "{digit}xx"),
            Self::Grpc(status) => f.write_str(status.name()),
        }
    }
}

/// The text is neither a final status, nor a class of them, nor a gRPC status.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{text:?} is neither a status from 200 to 599, nor a class such as 2xx, nor a status of gRPC such as UNAVAILABLE"
)]
pub struct StatusSetError {
    text: String,
}

impl StatusSetError {
    // Enough to recognise the input.
    const CHARS_MAX: usize = 32;
}

/// The outcome of every status.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Outcomes {
    by_status: [Outcome; 600],
    by_grpc: [Outcome; GrpcStatus::ALL.len()],
    transient_error: bool,
}

impl Default for Outcomes {
    /// Responses are final, except those that ask for another attempt: the caller can correct the request, retry later
    /// or use another URL (401, 429, 307 and similar), and a server error must be retryable. A server error is released
    /// because it comes from the handler, but 502 and 504 come from a gateway, which cannot tell whether the request
    /// ran.
    fn default() -> Self {
        Self::all(Outcome::Pin)
            .with(Outcome::Release, &[401, 403, 407, 408, 412, 421, 423, 425, 428, 429, 307, 308])
            .with_class(Outcome::Release, 5)
            .with(Outcome::Uncertain, &GATEWAY)
    }
}

impl Outcomes {
    /// Every response of the endpoint is final, server errors included; responses before the endpoint runs are not.
    pub(crate) fn stripe_v1() -> Self {
        Self::all(Outcome::Pin).with(Outcome::Release, &[401, 429])
    }

    /// Every server error is final unless it carries `transient-error: true`.
    pub(crate) fn adyen() -> Self {
        let mut outcomes = Self::default().with_class(Outcome::Pin, 5);
        outcomes.transient_error = true;
        outcomes
    }

    /// Only successes are final. Other errors of such a provider may run again; those of a gateway are unknown.
    pub(crate) fn success_only() -> Self {
        Self::all(Outcome::Release).with_class(Outcome::Pin, 2).with(Outcome::Uncertain, &GATEWAY)
    }

    /// Every 4xx is final, every 5xx is retryable, and those of a gateway are unknown.
    pub(crate) fn oasis() -> Self {
        Self::default().with_class(Outcome::Pin, 4)
    }

    /// Sets the outcome of these statuses. A later call overrides an earlier one.
    pub(crate) fn set(&mut self, which: StatusSet, outcome: Outcome) {
        match which {
            StatusSet::One(status) => {
                // Statuses beyond the table have no entry; see `of`.
                if let Some(entry) = self.by_status.get_mut(usize::from(status.as_u16())) {
                    *entry = outcome;
                }
            }
            StatusSet::Class(digit) => {
                if let Some(entries) = self.by_status.get_mut(class_of(digit)) {
                    entries.fill(outcome);
                }
            }
            StatusSet::Grpc(status) => self.by_grpc[status as usize] = outcome,
        }
    }

    /// The outcome of a response with this status.
    pub(crate) fn of(&self, status: StatusCode) -> Outcome {
        if status.is_informational() {
            // An interim response: there is nothing to record yet.
            return Outcome::Release;
        }
        // A status outside the range of HTTP counts as a server error (RFC 9110, section 15).
        self.by_status.get(usize::from(status.as_u16())).copied().unwrap_or(self.by_status[500])
    }

    /// The outcome of a gRPC response with this status.
    pub(crate) fn of_grpc(&self, status: GrpcStatus) -> Outcome {
        self.by_grpc[status as usize]
    }

    /// The published table of gRPC statuses.
    pub(crate) fn published_grpc(&self) -> Vec<(StatusSet, Outcome)> {
        GrpcStatus::ALL.map(|status| (StatusSet::Grpc(status), self.of_grpc(status))).into()
    }

    /// The published table: each class with its most frequent outcome, then the statuses that differ. Calling `set`
    /// with the entries in order makes the same table.
    pub(crate) fn published(&self) -> Vec<(StatusSet, Outcome)> {
        let mut list = Vec::new();
        for digit in 2..=5 {
            let class = StatusSet::Class(digit);
            let entries = &self.by_status[class_of(digit)];
            let frequency = |outcome: &Outcome| entries.iter().filter(|entry| *entry == outcome).count();
            let usual = Outcome::ALL.into_iter().max_by_key(frequency).unwrap_or(Outcome::Uncertain);
            list.push((class, usual));
            let others = (digit * 100..).zip(entries).filter(|(_, entry)| **entry != usual);
            list.extend(others.filter_map(|(status, entry)| {
                StatusCode::from_u16(status).ok().map(|status| (StatusSet::One(status), *entry))
            }));
        }
        list
    }

    fn all(outcome: Outcome) -> Self {
        let by_grpc = GrpcStatus::ALL.map(GrpcStatus::usual_outcome);
        Self { by_status: [outcome; 600], by_grpc, transient_error: false }
    }

    fn with(mut self, outcome: Outcome, statuses: &[usize]) -> Self {
        for status in statuses {
            self.by_status[*status] = outcome;
        }
        self
    }

    fn with_class(mut self, outcome: Outcome, digit: u16) -> Self {
        self.set(StatusSet::Class(digit), outcome);
        self
    }

    fn is_transient(&self, headers: &HeaderMap) -> bool {
        let says_so = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"true");
        self.transient_error && headers.get(TRANSIENT_ERROR).is_some_and(says_so)
    }
}

/// The range of the table with this first digit.
fn class_of(digit: u16) -> std::ops::Range<usize> {
    usize::from(digit) * 100..usize::from(digit) * 100 + 100
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let published = self.published();
        f.debug_map()
            .entries(published.iter().map(|(set, outcome)| (set.to_string(), outcome.name())))
            .finish()
    }
}

/// The outcome of this response: the handler's override, then the origin's, then the table.
pub(crate) fn classify_response(outcomes: &Outcomes, parts: &Parts) -> Outcome {
    let transient = outcomes.is_transient(&parts.headers);
    override_or(parts, if transient { Outcome::Release } else { outcomes.of(parts.status) })
}

/// The override of the handler or the origin, or else `otherwise`. A refusal by an inner layer is an override too: a
/// conflict is never stored, not even that of another layer (X-05).
///
/// An `Idempotency-Outcome` that is invalid or repeated with different values leaves a pinned response pinned and makes
/// any other uncertain: the origin may have meant to pin it.
pub(crate) fn override_or(parts: &Parts, otherwise: Outcome) -> Outcome {
    if let Some(outcome) = parts.extensions.get::<Outcome>() {
        return *outcome;
    }
    let mut lines =
        header::Fields::of(&parts.headers).lines(&OUTCOME).map(|line| Outcome::from_word(line.as_bytes()));
    let Some(first) = lines.next() else {
        let refused = problem::refused_with(&parts.headers);
        return refused.map_or(otherwise, |code| code.outcome(Some(parts.status)));
    };
    match first {
        Some(outcome) if lines.all(|line| line == first) => outcome,
        _ => otherwise.with_invalid_override(),
    }
}

/// Why this response is uncertain, if it is: the reason set by the inner service, the override of the handler or the
/// origin, or the status.
pub(crate) fn uncertain_reason(parts: &mut Parts) -> Reason {
    let is_declared =
        parts.extensions.get::<Outcome>().is_some() || header::first(&parts.headers, &OUTCOME).is_some();
    let stated = parts.extensions.remove();
    stated.unwrap_or(if is_declared { Reason::Declared } else { Reason::Answered })
}

/// Removes the field `Idempotency-Outcome` from a response. Most responses lack it, and the check for that is cheaper
/// than a removal.
pub(crate) fn remove_override(headers: &mut HeaderMap) {
    if header::first(headers, &OUTCOME).is_some() {
        headers.remove(OUTCOME);
    }
}

/// Whether a response with this status counts as a success: a pinned error is *failed*, not *completed*.
pub(crate) fn class(status: StatusCode) -> Class {
    if status.as_u16() >= 400 { Class::Error } else { Class::Success }
}

/// The outcome of a GraphQL response beyond its status: errors without data release the key. Any other body, also one
/// that is not a GraphQL response, is left to the status.
pub(crate) fn graphql(body: &[u8]) -> Option<Outcome> {
    #[derive(Deserialize)]
    struct GraphQlResponse {
        #[serde(default)]
        errors: Option<Vec<IgnoredAny>>,
        #[serde(default)]
        data: Option<IgnoredAny>,
    }
    let response: GraphQlResponse = serde_json::from_slice(body).ok()?;
    let failed = response.data.is_none() && response.errors.is_some_and(|errors| !errors.is_empty());
    failed.then_some(Outcome::Release)
}

#[cfg(test)]
mod tests;
