//! The last minutes of the process's metrics, for charts.
//!
//! Samples are read from the same text that Prometheus reads, so the console can show nothing that monitoring does
//! not see. They are kept in a ring of fixed length.

mod parse;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::RwLock;

pub(crate) use self::parse::Histogram;

/// How far apart samples are; the console asks as often.
pub(crate) const EVERY: Duration = Duration::from_secs(2);

/// Five minutes: long enough to see an incident begin, short enough to see it live.
const SAMPLES_MAX: usize = 151;

/// What the metrics said at one moment. Counters are totals since the start.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Sample {
    /// How long the process had been up.
    pub(crate) at: Duration,
    /// Requests by outcome.
    pub(crate) requests: BTreeMap<String, f64>,
    /// How long requests took, whatever became of them.
    pub(crate) answered: Histogram,
    /// How long claims took.
    pub(crate) claim: Histogram,
    /// How long recording outcomes took.
    pub(crate) complete: Histogram,
    /// Runs of this process.
    pub(crate) in_progress: f64,
    /// Uncertain records in the store, as of the last sweep or count.
    pub(crate) uncertain: f64,
    /// Duplicates that wait.
    pub(crate) waiters: f64,
    /// Failed store calls.
    pub(crate) store_errors: f64,
}

/// What happened between two samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Step {
    /// Requests per second by outcome.
    pub(crate) rates: BTreeMap<String, f64>,
    /// The time of a request, in seconds, that 99 of 100 kept below; none without requests.
    pub(crate) answered_p99: Option<f64>,
    /// The same for claims.
    pub(crate) claim_p99: Option<f64>,
    /// The same for recording.
    pub(crate) complete_p99: Option<f64>,
    pub(crate) in_progress: f64,
    pub(crate) uncertain: f64,
}

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    ring: RwLock<VecDeque<Sample>>,
}

impl Samples {
    /// Takes a sample of what the metrics say now.
    pub(crate) fn take(&self, metrics: &PrometheusHandle, at: Duration) {
        self.push(Sample { at, ..self.read(metrics) });
    }

    /// What the metrics say now.
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

    /// What happened, oldest first; the newest is the last.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let ring = self.ring.read();
        ring.iter().zip(ring.iter().skip(1)).map(|(earlier, later)| Step::between(earlier, later)).collect()
    }

    /// The most steps there can be.
    pub(crate) const fn steps_max() -> usize {
        SAMPLES_MAX - 1
    }
}

impl Step {
    fn between(earlier: &Sample, later: &Sample) -> Self {
        // A process that was stopped for a while takes its next sample late.
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
