//! The names of all spans, metrics and log fields. Facades only: the application chooses the recorder.
//!
//! Keys and principals are never recorded; a record is identified by its id, which contains only hashes.
//!
//! Each execution has one span, `hapax.execution`, even if its caller has disconnected. Its fields are `operation`,
//! `id` and, once the key is acquired, `attempt`; its parent is the caller's span. Each event that a consumer handles has
//! one span, `hapax.event`, around its attempts and the holds between them. Its fields are `consumer` and `type`.

mod outage;

#[cfg(feature = "http")]
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Lease, Reason, RecordId, ScopedKey, StoreError, Swept};
use tracing::Span;

pub use self::outage::Outage;
use crate::events::DeliveryError;

/// Counter: requests by `surface`, `route` and `outcome`.
pub const REQUESTS: &str = "hapax_requests_total";
/// Histogram: seconds a claim took.
pub const CLAIM_SECONDS: &str = "hapax_claim_seconds";
/// Histogram: seconds it took to record an outcome.
pub const COMPLETE_SECONDS: &str = "hapax_complete_seconds";
/// Gauge: runs of this process.
pub const IN_PROGRESS: &str = "hapax_in_progress";
/// Gauge: uncertain records in the store, as of the last sweep; `hapax serve` counts them more often.
pub const UNCERTAIN: &str = "hapax_uncertain";
/// Gauge: duplicates of this process that wait for a result.
pub const WAITERS: &str = "hapax_waiters";
/// Counter: failed store calls by `op` and `kind`.
pub const STORE_ERRORS: &str = "hapax_store_errors_total";
/// Counter: swept records by `why` (`expired`, `dropped`).
pub const SWEPT: &str = "hapax_swept_total";
/// Counter: requests by `route` whose key was derived from their body.
pub const KEYS_DERIVED: &str = "hapax_keys_derived_total";
/// Histogram: how much of its retention had passed when a record was replayed from the store, from 0 to 1. Retries that
/// come close to 1 call for a longer retention.
pub const REPLAY_AGE: &str = "hapax_replay_age_ratio";
/// Counter: events by `consumer` and `outcome` (`ran`, `duplicate`, `dead`, `given_back`).
pub const EVENTS: &str = "hapax_events_total";
/// Counter: failed attempts by `consumer` after which an event is tried again.
pub const EVENT_RETRIES: &str = "hapax_event_retries_total";
/// Counter: events by `consumer` and `reason` that became dead letters.
pub const DEAD_LETTERS: &str = "hapax_dead_letters_total";
/// Gauge: deliveries by `consumer` that are neither acknowledged nor given back yet.
pub const EVENTS_IN_HAND: &str = "hapax_events_in_hand";
/// Gauge: those that are held until their next attempt, or for the store.
pub const EVENTS_HELD: &str = "hapax_events_held";
/// Counter: calls of brokers by `consumer` and `call` (`ack`, `nack`, `extend`) that failed.
pub const DELIVERY_ERRORS: &str = "hapax_delivery_errors_total";
/// Counter: leases that lapsed or were taken over while their run continued.
pub const LEASE_LOST: &str = "hapax_lease_lost_total";

/// The `outcome` of a request whose service could not be reached: nothing was sent to it.
pub const UNREACHABLE: &str = "unreachable";

/// The outcome of one request, as the `outcome` label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OutcomeLabel {
    Ran,
    Failed,
    Replayed,
    Unrecorded,
    #[cfg(feature = "http")]
    Unprotected,
    InProgress,
    Mismatch,
    Uncertain,
    Deadline,
    Refused,
    StoreError,
    #[cfg(feature = "http")]
    Unreachable,
}

#[cfg(feature = "http")]
const OUTCOMES: [OutcomeLabel; 12] = [
    OutcomeLabel::Ran,
    OutcomeLabel::Failed,
    OutcomeLabel::Replayed,
    OutcomeLabel::Unrecorded,
    OutcomeLabel::Unprotected,
    OutcomeLabel::InProgress,
    OutcomeLabel::Mismatch,
    OutcomeLabel::Uncertain,
    OutcomeLabel::Deadline,
    OutcomeLabel::Refused,
    OutcomeLabel::StoreError,
    OutcomeLabel::Unreachable,
];

impl OutcomeLabel {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Failed => "failed",
            Self::Replayed => "replayed",
            Self::Unrecorded => "unrecorded",
            #[cfg(feature = "http")]
            Self::Unprotected => "unprotected",
            Self::InProgress => "in_progress",
            Self::Mismatch => "mismatch",
            Self::Uncertain => "uncertain",
            Self::Deadline => "deadline",
            Self::Refused => "refused",
            Self::StoreError => "store_error",
            #[cfg(feature = "http")]
            Self::Unreachable => UNREACHABLE,
        }
    }
}

/// The span around one execution.
pub(crate) fn execution(key: &ScopedKey) -> Span {
    tracing::info_span!(
        "hapax.execution",
        operation = key.scope.operation(),
        id = %key.id,
        attempt = tracing::field::Empty,
    )
}

/// Records the attempt in the current execution's span.
pub(crate) fn attempt(lease: &Lease) {
    Span::current().record("attempt", lease.fence.attempt);
}

/// Counts exactly one outcome for a request.
pub(crate) fn request(surface: &'static str, route: &str, outcome: OutcomeLabel) {
    metrics::counter!(REQUESTS, "surface" => surface, "route" => route.to_owned(), "outcome" => outcome.name())
        .increment(1);
}

/// Counts the requests of one route. The metric keys are built once, not for every request.
#[cfg(feature = "http")]
#[derive(Debug)]
pub(crate) struct Requests([metrics::Key; OUTCOMES.len()]);

#[cfg(feature = "http")]
impl Requests {
    pub(crate) fn new(surface: &'static str, route: &str) -> Self {
        Self(OUTCOMES.map(|outcome| {
            let labels = [
                metrics::Label::from_static_parts("surface", surface),
                metrics::Label::new("route", route.to_owned()),
                metrics::Label::from_static_parts("outcome", outcome.name()),
            ];
            metrics::Key::from_parts(REQUESTS, labels.to_vec())
        }))
    }

    /// Counts exactly one outcome for a request.
    pub(crate) fn count(&self, outcome: OutcomeLabel) {
        static METADATA: metrics::Metadata<'static> =
            metrics::Metadata::new(module_path!(), metrics::Level::INFO, Some(module_path!()));
        let key = &self.0[outcome as usize];
        metrics::with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(1));
    }
}

#[cfg(feature = "http")]
pub(crate) fn key_derived(route: &Arc<str>) {
    metrics::counter!(KEYS_DERIVED, "route" => route.clone()).increment(1);
}

pub(crate) fn claimed_in(took: Duration) {
    metrics::histogram!(CLAIM_SECONDS).record(took);
}

pub(crate) fn recorded_in(took: Duration) {
    metrics::histogram!(COMPLETE_SECONDS).record(took);
}

pub(crate) fn store_error(error: &StoreError) {
    metrics::counter!(STORE_ERRORS, "op" => error.op(), "kind" => error.kind().name()).increment(1);
}

pub(crate) fn swept(swept: &Swept) {
    metrics::counter!(SWEPT, "why" => "expired").increment(swept.expired);
    metrics::counter!(SWEPT, "why" => "dropped").increment(swept.dropped);
    if swept.dropped > 0 {
        tracing::warn!(
            dropped = swept.dropped,
            "unsettled records were dropped after their uncertain_retention"
        );
    }
}

/// Logs that a record becomes uncertain: once for every attempt.
pub(crate) fn became_uncertain(
    id: &RecordId,
    attempt: u32,
    route: Option<&str>,
    reason: Reason,
    upstream: Option<&str>,
) {
    tracing::warn!(
        %id, attempt, route, cause = reason.name(), upstream,
        "a record becomes uncertain: {}", reason.words()
    );
}

/// Logs the same of an attempt whose run continues.
pub(crate) fn lapses(
    id: &RecordId,
    attempt: u32,
    route: Option<&str>,
    upstream: Option<&str>,
    what: &'static str,
) {
    tracing::warn!(%id, attempt, route, cause = Reason::Lapsed.name(), upstream, "{what}");
}

/// Records how much of the retention had passed when a record was replayed. A dead letter is kept for longer than the
/// retention and is not counted.
pub(crate) fn replayed(retention: Duration, remaining: Duration) {
    if let Some(age) = retention.checked_sub(remaining).filter(|_| !retention.is_zero()) {
        metrics::histogram!(REPLAY_AGE).record(age.as_secs_f64() / retention.as_secs_f64());
    }
}

/// The span around the handling of one event.
pub(crate) fn event(consumer: &str, kind: &str) -> Span {
    tracing::info_span!("hapax.event", consumer, "type" = kind)
}

/// Counts how an event ended.
pub(crate) fn event_handled(consumer: &str, outcome: &'static str) {
    metrics::counter!(EVENTS, "consumer" => consumer.to_owned(), "outcome" => outcome).increment(1);
}

pub(crate) fn event_retried(consumer: &str) {
    metrics::counter!(EVENT_RETRIES, "consumer" => consumer.to_owned()).increment(1);
}

pub(crate) fn dead_letter(consumer: &str, reason: &'static str) {
    metrics::counter!(DEAD_LETTERS, "consumer" => consumer.to_owned(), "reason" => reason).increment(1);
    tracing::warn!(consumer, reason, "an event became a dead letter");
}

/// Counts and logs a failed call of a broker. The event is delivered again.
pub(crate) fn delivery_failed(consumer: &str, call: &'static str, error: &DeliveryError) {
    metrics::counter!(DELIVERY_ERRORS, "consumer" => consumer.to_owned(), "call" => call).increment(1);
    tracing::warn!(consumer, call, %error, "a call of the broker failed; it delivers the event again");
}

pub(crate) fn uncertain(records: u64) {
    metrics::gauge!(UNCERTAIN).set(records as f64);
}

pub(crate) fn lease_lost() {
    metrics::counter!(LEASE_LOST).increment(1);
}

/// Increments a gauge until dropped.
pub(crate) struct Present(metrics::Gauge);

impl Present {
    pub(crate) fn in_gauge(name: &'static str) -> Self {
        Self::counted(metrics::gauge!(name))
    }

    /// The same for a gauge of consumers.
    pub(crate) fn in_gauge_of(name: &'static str, consumer: &str) -> Self {
        Self::counted(metrics::gauge!(name, "consumer" => consumer.to_owned()))
    }

    fn counted(gauge: metrics::Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
