//! The setup of logs and metrics of a running sidecar.

use std::io::{self, IsTerminal};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use crate::failure::{Code, Failure};
use crate::nearest::nearest;

/// Counter: batches of spans by `result` (`delivered`, `lost`).
pub(crate) const TRACE_BATCHES: &str = "hapax_trace_batches_total";

/// The log target of the access log.
pub(crate) const REQUESTS_LOGGED: &str = "hapax::requests";

/// Log level and format.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogOptions {
    /// The format of log lines.
    pub(crate) format: LogFormat,
    /// The minimum level that is logged: `error`, `warn`, `info`, `debug`, `trace`; by target, as in `info,hapax=debug`.
    pub(crate) level: String,
    /// Whether the access log is written, whatever the level: one line per request with its id, method, route, outcome, status, problem, milliseconds and record.
    pub(crate) requests: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { format: LogFormat::default(), level: "info".to_owned(), requests: false }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Plain text, in colour on a terminal.
    #[default]
    Text,
    /// One JSON document per line.
    Json,
}

impl LogFormat {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl LogOptions {
    /// The filter. A misspelled level is refused: it would be parsed as the name of a target and disable all others.
    pub(crate) fn filter(&self) -> Result<EnvFilter, String> {
        for word in self.level.split(',') {
            let level = word.rsplit('=').next().unwrap_or_default().trim();
            if !LEVELS.contains(&level.to_ascii_lowercase().as_str()) {
                let near =
                    nearest(level, LEVELS).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                return Err(format!("{level:?} is not a level: {}{near}", LEVELS.join(", ")));
            }
        }
        let filter: EnvFilter = self.level.parse().map_err(|error| format!("{:?}: {error}", self.level))?;
        if !self.requests {
            return Ok(filter);
        }
        let of_requests = format!("{REQUESTS_LOGGED}=info").parse().map_err(|error| format!("{error}"))?;
        Ok(filter.add_directive(of_requests))
    }
}

/// Writes logs to stderr from now on.
pub(crate) fn logs(options: &LogOptions) -> Result<(), Failure> {
    let filter = options.filter().map_err(|why| Failure::new(Code::ConfigInvalid, why))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // If a subscriber is installed already, it stays.
    let _already = match options.format {
        LogFormat::Text => logs.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// The buckets of histograms of seconds: a claim in memory takes microseconds, one on a disk that syncs milliseconds, and
/// more than the default lease is a failure anyway.
const SECONDS: [f64; 18] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 30.0,
];

/// The buckets of histograms of parts of a whole. What is close to 1 matters most.
const RATIOS: [f64; 8] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0];

/// Installs the metrics recorder, once, and returns its handle.
pub(crate) fn metrics() -> Result<PrometheusHandle, Failure> {
    static INSTALLED: Mutex<Option<PrometheusHandle>> = Mutex::new(None);
    let mut installed = INSTALLED.lock();
    if let Some(handle) = &*installed {
        return Ok(handle.clone());
    }
    let failed = |error| Failure::new(Code::Failed, "cannot record metrics").because(error);
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_ratio".to_owned()), &RATIOS))
        .and_then(PrometheusBuilder::install_recorder);
    Ok(installed.insert(recorder.map_err(failed)?).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_is_installed_once() {
        metrics().unwrap();
        let handle = metrics().unwrap();
        metrics::histogram!("hapax_claim_seconds").record(0.0007);
        metrics::histogram!("hapax_replay_age_ratio").record(0.8);
        let rendered = handle.render();
        assert!(rendered.contains("hapax_claim_seconds_bucket{le=\"0.0005\"} 0"), "{rendered}");
        assert!(rendered.contains("hapax_claim_seconds_bucket{le=\"0.001\"} 1"), "{rendered}");
        assert!(rendered.contains("hapax_replay_age_ratio_bucket{le=\"0.9\"} 1"), "{rendered}");
    }
}
