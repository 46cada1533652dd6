//! The section `[trace]` of the configuration.

use std::time::Duration;

use hapax::http::settings::Span;
use http::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::http_url;

/// The export of traces.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TraceOptions {
    /// The URL of an OpenTelemetry collector that accepts OTLP over HTTP, such as `http://127.0.0.1:4318`; `/v1/traces` is
    /// appended. Without it nothing is traced.
    pub(crate) endpoint: Option<Collector>,
    /// The fraction of traces that are recorded, from 0 to 1, of those that start here. For the others, the sampling decision
    /// of the caller applies.
    pub(crate) sample_ratio: Ratio,
    /// The name of this process in traces.
    pub(crate) service_name: String,
    /// The timeout of exporting a batch of spans, also of the last one at shutdown.
    pub(crate) timeout: Span,
    /// How often spans are exported.
    pub(crate) interval: Span,
    /// The most spans in a batch.
    pub(crate) batch_max: usize,
    /// The most spans waiting to be exported. More are dropped.
    pub(crate) queue_max: usize,
    /// How many first runs are remembered, so that the spans of their replays can link to them.
    pub(crate) links_max: usize,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            endpoint: None,
            sample_ratio: Ratio(1.0),
            service_name: "hapax".to_owned(),
            timeout: Span(Duration::from_secs(5)),
            interval: Span(Duration::from_secs(5)),
            batch_max: 512,
            queue_max: 4096,
            links_max: 10_000,
        }
    }
}

/// The URL of a collector.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub(crate) struct Collector(Uri);

impl Collector {
    /// The URL as it is configured.
    pub(crate) fn url(&self) -> &Uri {
        &self.0
    }

    /// The URL that traces are exported to.
    pub(super) fn of_traces(&self) -> String {
        format!("{}/v1/traces", self.0.to_string().trim_end_matches('/'))
    }
}

impl TryFrom<String> for Collector {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let url = http_url(&text)?;
        match url.query() {
            None => Ok(Self(url)),
            Some(_) => Err("the URL of a collector must have no query: http://HOST:4318".to_owned()),
        }
    }
}

impl From<Collector> for String {
    fn from(collector: Collector) -> Self {
        collector.0.to_string()
    }
}

/// From 0 for none to 1 for all.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
pub(crate) struct Ratio(#[schemars(range(min = 0.0, max = 1.0))] f64);

impl Ratio {
    pub(super) const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Ratio {
    type Error = &'static str;

    fn try_from(ratio: f64) -> Result<Self, &'static str> {
        if (0.0..=1.0).contains(&ratio) { Ok(Self(ratio)) } else { Err("a ratio is between 0 and 1") }
    }
}

impl From<Ratio> for f64 {
    fn from(ratio: Ratio) -> Self {
        ratio.0
    }
}
