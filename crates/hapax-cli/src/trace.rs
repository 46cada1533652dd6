//! Traces: one span for each request and one for its call of the service behind, told to an OpenTelemetry collector.
//!
//! | file | what it owns |
//! |---|---|
//! | `trace/options.rs` | what can be configured |
//! | `trace/server.rs` | the span of a request, around the layer |
//! | `trace/upstream.rs` | the span of the call behind, and what the service is told of it |
//! | `trace/firsts.rs` | which span a replay goes back to |
//! | `trace/deliver.rs` | the way to the collector |
//!
//! Nobody waits for the collector: spans that it does not take in time are lost, and requests go on. No span holds
//! anything that a caller sent but the method of the request and the ids of its trace.

mod deliver;
mod firsts;
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
use self::firsts::Firsts;
pub(crate) use self::options::TraceOptions;
pub(crate) use self::server::Traced;
pub(crate) use self::upstream::TracedUpstream;
use crate::failure::{Code, Failure};

/// Less would keep a processor busy with looking.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The words that spans are described in.
mod word {
    pub(super) const ATTEMPT: &str = "hapax.attempt";
    pub(super) const ERROR: &str = "error.type";
    pub(super) const METHOD: &str = "http.request.method";
    pub(super) const OUTCOME: &str = "hapax.outcome";
    pub(super) const RECORD: &str = "hapax.record";
    pub(super) const ROUTE: &str = "http.route";
    pub(super) const STATUS: &str = "http.response.status_code";
    /// The outcome of a request that the layer leaves alone; the others are called as the metrics call them.
    pub(super) use crate::telemetry::PASSED;
}

/// Records spans. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Tracing {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
    firsts: Firsts,
}

/// What the span of a request hands to whoever calls the service behind. It is in the request's extensions.
#[derive(Clone)]
struct Begun(Context);

impl Tracing {
    /// Records spans from now on; none where nobody says where to send them. To be called inside of the runtime, which
    /// sends them.
    pub(crate) fn start(options: &TraceOptions) -> Result<Option<Self>, Failure> {
        let Some(endpoint) = &options.endpoint else { return Ok(None) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Delivery::new(options.timeout.0))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.of_traces())
            .with_timeout(options.timeout.0)
            // Whatever waits for another try takes the place of what is newer.
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| Failure::new(Code::ConfigInvalid, "traces cannot be sent").because(error))?;
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
            firsts: Firsts::new(options.links_max),
        };
        Ok(Some(Self { shared: Arc::new(shared) }))
    }

    /// Sends what is left, but not for longer than this. Nothing is recorded afterwards.
    pub(crate) async fn end(self, within: Duration) {
        let ended =
            tokio::task::spawn_blocking(move || self.shared.provider.shutdown_with_timeout(within)).await;
        if let Ok(Err(error)) = ended {
            tracing::debug!(%error, "the last spans were not delivered");
        }
    }
}

/// The methods that a span names; there is no end to the others.
fn method(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

#[cfg(test)]
mod tests;
