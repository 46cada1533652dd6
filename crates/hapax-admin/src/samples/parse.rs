//! Parses the exposition text for Prometheus. Unknown metrics are skipped.

use hapax::observe;

use super::Sample;
use crate::metric_names::{PASSED, REQUEST_SECONDS};

/// The totals of a histogram: the count, the sum, and the cumulative count of each bucket.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Histogram {
    pub(crate) count: f64,
    pub(crate) sum: f64,
    /// Upper bounds in seconds with their cumulative counts, ascending. Empty without buckets.
    pub(crate) buckets: Vec<(f64, f64)>,
}

impl Histogram {
    /// The difference to an earlier state.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let before = |bound: f64| {
            earlier.buckets.iter().find(|(known, _)| *known == bound).map_or(0.0, |(_, count)| *count)
        };
        Self {
            count: (self.count - earlier.count).max(0.0),
            sum: (self.sum - earlier.sum).max(0.0),
            buckets: self.buckets.iter().map(|(bound, count)| (*bound, count - before(*bound))).collect(),
        }
    }

    /// The quantile `q`, interpolated within its bucket; the mean without buckets.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        if self.count <= 0.0 {
            return None;
        }
        let wanted = q * self.count;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, count) in &self.buckets {
            if *count >= wanted && bound.is_finite() {
                let part = if *count > below { (wanted - below) / (count - below) } else { 1.0 };
                return Some(lower + (bound - lower) * part);
            }
            if bound.is_finite() {
                (lower, below) = (*bound, *count);
            }
        }
        // Values above the last bound are unknown; without buckets only the mean is known.
        Some(if self.buckets.is_empty() { self.sum / self.count } else { lower })
    }
}

/// Parses a sample.
pub(super) fn sample(text: &str) -> Sample {
    let mut sample = Sample::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        match name {
            observe::REQUESTS => {
                if let Some(outcome) = label(labels, "outcome") {
                    *sample.requests.entry(outcome.to_owned()).or_default() += value;
                }
            }
            observe::IN_PROGRESS => sample.in_progress = value,
            observe::UNCERTAIN => sample.uncertain = value,
            observe::WAITERS => sample.waiters = value,
            observe::STORE_ERRORS => sample.store_errors += value,
            _ => {
                // Requests that pass through are counted in this histogram only.
                if name.strip_prefix(REQUEST_SECONDS) == Some("_count")
                    && label(labels, "outcome") == Some(PASSED)
                {
                    *sample.requests.entry(PASSED.to_owned()).or_default() += value;
                }
                for (metric, histogram) in [
                    (REQUEST_SECONDS, &mut sample.answered),
                    (observe::CLAIM_SECONDS, &mut sample.claim),
                    (observe::COMPLETE_SECONDS, &mut sample.complete),
                ] {
                    match name.strip_prefix(metric) {
                        Some("_count") => histogram.count += value,
                        Some("_sum") => histogram.sum += value,
                        Some("_bucket") => bucket(histogram, labels, value),
                        _ => {}
                    }
                }
            }
        }
    }
    sample
}

fn bucket(histogram: &mut Histogram, labels: &str, count: f64) {
    let Some(bound) = label(labels, "le").and_then(|bound| bound.parse::<f64>().ok()) else { return };
    match histogram.buckets.iter_mut().find(|(known, _)| *known == bound) {
        Some((_, known)) => *known += count,
        None => histogram.buckets.push((bound, count)),
    }
}

/// The value of a label. Quotes within values are escaped, so the search finds no value of another label.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let start = labels.find(&format!("{name}=\""))? + name.len() + 2;
    labels[start..].split('"').next()
}
