//! The names of the span, the events and the metrics. Facades only: the application chooses the recorder.
//!
//! A key is recorded as its hash, a body never.

use std::time::Duration;

use hapax_core::Key;
use http::Method;
use reqwest::Url;
use tracing::Span;

use crate::error::Error;
use crate::response::Response;

/// Counter: logical calls by `outcome` (`answered`, `replayed`, `uncertain`, `refused`, `mismatch`, `in_progress`,
/// `exhausted`, `journal`, `invalid`).
pub const CALLS: &str = "hapax_client_calls_total";
/// Counter: requests that were sent, or that tried to connect.
pub const ATTEMPTS: &str = "hapax_client_attempts_total";
/// Counter: attempts after the first by `reason` (`connect`, `timeout`, `transport`, `status`, `in_progress`).
pub const RETRIES: &str = "hapax_client_retries_total";

/// The span of a logical call.
pub(crate) fn call_span(method: &Method, url: &Url, key: Option<&Key>) -> Span {
    let host = url.host_str().unwrap_or_default();
    let span = tracing::info_span!("hapax.client.call", %method, host, key = tracing::field::Empty);
    if let Some(key) = key {
        // `Debug` of a key is its hash.
        span.record("key", tracing::field::debug(key));
    }
    span
}

/// One attempt begins.
pub(crate) fn attempt_began(attempt: u32) {
    metrics::counter!(ATTEMPTS).increment(1);
    tracing::debug!(attempt, "sending the request");
}

/// An attempt is followed by another.
pub(crate) fn attempt_follows(attempt: u32, reason: &'static str, pause: Duration) {
    tracing::info!(attempt, reason, pause_ms = pause.as_millis() as u64, "the attempt will be repeated");
    metrics::counter!(RETRIES, "reason" => reason).increment(1);
}

/// A call ended.
pub(crate) fn call_ended(result: &Result<Response, Error>) {
    let outcome = outcome(result);
    metrics::counter!(CALLS, "outcome" => outcome).increment(1);
    match result {
        Ok(response) => {
            tracing::debug!(outcome, status = response.status().as_u16(), attempts = response.attempts());
        }
        Err(_) => tracing::debug!(outcome, "the call ended without a final answer"),
    }
}

fn outcome(result: &Result<Response, Error>) -> &'static str {
    match result {
        Ok(response) if response.replayed() => "replayed",
        Ok(_) | Err(Error::Status(_) | Error::Decode { .. }) => "answered",
        Err(Error::Uncertain { .. }) => "uncertain",
        Err(Error::Refused { .. }) => "refused",
        Err(Error::Mismatch { .. }) => "mismatch",
        Err(Error::InProgress { .. }) => "in_progress",
        Err(Error::Exhausted { .. }) => "exhausted",
        Err(Error::Journal(_)) => "journal",
        Err(Error::Request(_)) => "invalid",
    }
}

/// The journal did not take a call.
pub(crate) fn call_not_begun(error: &Error) {
    let outcome = if matches!(error, Error::Mismatch { .. }) { "mismatch" } else { "journal" };
    metrics::counter!(CALLS, "outcome" => outcome).increment(1);
}
