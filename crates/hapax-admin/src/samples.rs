//! The metrics of the last minutes, for charts.
//!
//! Samples are parsed from the exposition text for Prometheus, so the console shows the same values as monitoring. They are
//! kept in a ring buffer.

mod parse;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::RwLock;

pub(crate) use self::parse::Histogram;

/// The sampling interval, and the refresh interval of the console.
pub(crate) const EVERY: Duration = Duration::from_secs(2);

/// Five minutes.
const SAMPLES_MAX: usize = 151;

/// The metrics at one time. Counters are totals since the start.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Sample {
    /// The uptime of the process.
    pub(crate) at: Duration,
    /// Requests by outcome.
    pub(crate) requests: BTreeMap<String, f64>,
    /// Durations of requests, of all outcomes.
    pub(crate) answered: Histogram,
    /// Durations of claims.
    pub(crate) claim: Histogram,
    /// Durations of the recording of outcomes.
    pub(crate) complete: Histogram,
    /// Runs of this process.
    pub(crate) in_progress: f64,
    /// Uncertain records in the store, as of the last sweep or count.
    pub(crate) uncertain: f64,
    /// Waiting duplicates.
    pub(crate) waiters: f64,
    /// Failed store calls.
    pub(crate) store_errors: f64,
}

/// The difference of two samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Step {
    /// Requests per second by outcome.
    pub(crate) rates: BTreeMap<String, f64>,
    /// The 99th percentile of the duration of requests, in seconds; none without requests.
    pub(crate) answered_p99: Option<f64>,
    /// The same for claims.
    pub(crate) claim_p99: Option<f64>,
    /// The same for recording.
    pub(crate) complete_p99: Option<f64>,
    pub(crate) in_progress: f64,
    pub(crate) uncertain: f64,
}

/// The ring buffer.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    ring: RwLock<VecDeque<Sample>>,
}

impl Samples {
    /// Adds a sample of the current metrics.
    pub(crate) fn take(&self, metrics: &PrometheusHandle, at: Duration) {
        self.push(Sample { at, ..self.read(metrics) });
    }

    /// A sample of the current metrics.
    pub(crate) fn read(&self, metrics: &PrometheusHandle) -> Sample {
        parse::sample(&metrics.render())
    }

    fn push(&self, sample: Sample) {
        let mut ring = self.ring.write();
        ring.push_back(sample);
        if ring.len() > SAMPLES_MAX {
            ring.pop_front();
        }
    }

    /// The differences of consecutive samples, oldest first.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let ring = self.ring.read();
        ring.iter().zip(ring.iter().skip(1)).map(|(earlier, later)| Step::between(earlier, later)).collect()
    }

    /// The capacity in steps.
    pub(crate) const fn steps_max() -> usize {
        SAMPLES_MAX - 1
    }
}

impl Step {
    fn between(earlier: &Sample, later: &Sample) -> Self {
        // A sample is late if the process was suspended.
        let elapsed = later.at.checked_sub(earlier.at).filter(|elapsed| !elapsed.is_zero()).unwrap_or(EVERY);
        let rate = |outcome: &String, total: &f64| {
            let before = earlier.requests.get(outcome).copied().unwrap_or_default();
            (outcome.clone(), (total - before).max(0.0) / elapsed.as_secs_f64())
        };
        Self {
            rates: later.requests.iter().map(|(outcome, total)| rate(outcome, total)).collect(),
            answered_p99: later.answered.since(&earlier.answered).quantile(0.99),
            claim_p99: later.claim.since(&earlier.claim).quantile(0.99),
            complete_p99: later.complete.since(&earlier.complete).quantile(0.99),
            in_progress: later.in_progress,
            uncertain: later.uncertain,
        }
    }
}

#[cfg(test)]
mod tests;
