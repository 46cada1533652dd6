//! [`Flaws`]: what goes wrong when a service executes an operation for the first time.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream;
use hapax_testkit::Random;
use parking_lot::Mutex;

/// The answer is later than this. Longer than an attempt of a caller that is to see a timeout.
pub(crate) const SLOW: Duration = Duration::from_millis(600);

/// A flaw of one execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    /// Nothing happens, and the answer is this status.
    Refused(StatusCode),
    /// The connection ends before the effect.
    ResetBeforeEffect,
    /// The connection ends after the effect, before the answer.
    ResetBeforeAnswer,
    /// The answer is slow.
    SlowAnswer,
    /// The answer is cut off.
    CutOffAnswer,
}

/// One of each, and as many executions without a flaw.
const CHOICES: [Option<Flaw>; 12] = [
    Some(Flaw::Refused(StatusCode::INTERNAL_SERVER_ERROR)),
    Some(Flaw::Refused(StatusCode::SERVICE_UNAVAILABLE)),
    Some(Flaw::ResetBeforeEffect),
    Some(Flaw::ResetBeforeAnswer),
    Some(Flaw::SlowAnswer),
    Some(Flaw::CutOffAnswer),
    None,
    None,
    None,
    None,
    None,
    None,
];

/// The flaws of a service. An operation is executed without a flaw from the second time on.
#[derive(Debug)]
pub(crate) struct Flaws {
    random: Random,
    struck: Mutex<HashSet<u64>>,
}

impl Flaws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::seeded(seed), struck: Mutex::default() }
    }

    /// The flaw of this execution. It depends on the seed and the key only.
    pub(crate) fn next(&self, key: u64) -> Option<Flaw> {
        let is_first = self.struck.lock().insert(key);
        let chosen = self.random.fork(key).pick(&CHOICES).copied().flatten();
        chosen.filter(|_| is_first)
    }
}

/// Ends the connection without an answer. The unwinding ends the task that serves it; no panic hook runs.
pub(crate) fn reset() -> ! {
    resume_unwind(Box::new("the connection ends here"))
}

/// The same answer, of which the second half of the body is missing.
pub(crate) fn cut_off(answer: Response, body: &str) -> Response {
    let half = Bytes::copy_from_slice(&body.as_bytes()[..body.len() / 2]);
    let parts = stream::iter([Ok(half), Err(std::io::Error::other("cut off"))]);
    answer.map(|_| Body::from_stream(parts))
}
