//! Traces: one span for each request and one for its upstream call, exported to an OpenTelemetry collector.
//!
//! | file | contents |
//! |---|---|
//! | `trace/options.rs` | the section `[trace]` |
//! | `trace/server.rs` | the span of a request, around the layer |
//! | `trace/upstream.rs` | the span of the upstream call, and its propagation to the upstream |
//! | `trace/first_runs.rs` | the spans of first runs, to which replays link |
//! | `trace/deliver.rs` | the export to the collector |
//!
//! Requests do not wait for the collector: spans that it does not accept in time are dropped. The only things from a
//! client in a span are the method of the request and the ids of its trace.

mod deliver;
mod first_runs;
mod options;
mod server;
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
};

use self::deliver::Delivery;
use self::first_runs::FirstRuns;
pub(crate) use self::options::TraceOptions;
pub(crate) use self::server::Traced;
pub(crate) use self::upstream::TracedUpstream;
use crate::failure::{Code, Failure};

/// A shorter interval would waste CPU time on wake-ups.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The names of attributes.
mod word {
    pub(super) const ATTEMPT: &str = "hapax.attempt";
    pub(super) const ERROR: &str = "error.type";
    pub(super) const METHOD: &str = "http.request.method";
    pub(super) const OUTCOME: &str = "hapax.outcome";
    pub(super) const RECORD: &str = "hapax.record";
    pub(super) const ROUTE: &str = "http.route";
    pub(super) const STATUS: &str = "http.response.status_code";
    /// The outcome of a request that the layer passed through; the other outcomes have the names of the metrics.
    pub(super) use hapax_admin::metric_names::PASSED;
}

/// Records and exports spans. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct Tracing {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
    first_runs: FirstRuns,
}

/// The context of a request's span, in the extensions of the request: the parent of the span of its upstream call.
#[derive(Clone)]
struct RequestContext(Context);

impl Tracing {
    /// Starts recording; none if no endpoint is configured. Must be called inside the runtime that exports the spans.
    pub(crate) fn start(options: &TraceOptions) -> Result<Option<Self>, Failure> {
        let Some(endpoint) = &options.endpoint else { return Ok(None) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Delivery::new(options.timeout.0))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.of_traces())
            .with_timeout(options.timeout.0)
            // Retried batches would displace newer spans.
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| Failure::new(Code::ConfigInvalid, "cannot export traces").because(error))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(options.queue_max.max(1))
            .with_max_export_batch_size(options.batch_max.clamp(1, options.queue_max.max(1)))
            .with_scheduled_delay(options.interval.0.max(INTERVAL_MIN))
            .build();
        let resource = Resource::builder()
            .with_service_name(options.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::new(exporter, batches))
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(
                options.sample_ratio.get(),
            ))))
            .with_resource(resource)
            .build();
        let shared = Shared {
            tracer: provider.tracer("hapax"),
            provider,
            propagator: TraceContextPropagator::new(),
            first_runs: FirstRuns::new(options.links_max),
        };
        Ok(Some(Self { shared: Arc::new(shared) }))
    }

    /// Exports the remaining spans within this time. Nothing is recorded afterwards.
    pub(crate) async fn end(self, within: Duration) {
        let ended =
            tokio::task::spawn_blocking(move || self.shared.provider.shutdown_with_timeout(within)).await;
        if let Ok(Err(error)) = ended {
            tracing::debug!(%error, "the last spans were not exported");
        }
    }
}

/// The method as an attribute. Unknown methods are replaced, because their number is unlimited.
fn method(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

#[cfg(test)]
mod tests;
