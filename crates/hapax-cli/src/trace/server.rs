//! [`Traced`]: the span of a request, from its head to the head of its response.
//!
//! A recorded response is complete by then. A response that passes through may stream for hours, which the span leaves out.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use futures_util::future::Either;
use hapax::http::Observer;
use http::{Request, Response};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::HeaderExtractor;
use tower_service::Service;

use super::{RequestContext, Tracing, method, word};

/// Traces the requests of a service, if tracing is enabled.
#[derive(Clone, Debug)]
pub(crate) struct Traced<S> {
    inner: S,
    tracing: Option<Tracing>,
}

impl<S> Traced<S> {
    pub(crate) fn new(inner: S, tracing: Option<Tracing>) -> Self {
        Self { inner, tracing }
    }
}

impl<S, B, R> Service<Request<B>> for Traced<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = Either<S::Future, Pin<Box<dyn Future<Output = Result<S::Response, Infallible>> + Send>>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let Some(tracing) = &self.tracing else { return Either::Left(self.inner.call(request)) };
        let span = RequestSpan::begin(tracing.clone(), &mut request);
        let answer = self.inner.call(request);
        Either::Right(Box::pin(async move {
            let response = answer.await?;
            span.answered(&response);
            Ok(response)
        }))
    }
}

/// The span of one request. It ends on drop, also when the client disconnects first.
struct RequestSpan {
    tracing: Tracing,
    context: Context,
    method: &'static str,
    observer: Observer,
}

impl RequestSpan {
    fn begin<B>(tracing: Tracing, request: &mut Request<B>) -> Self {
        let shared = &tracing.shared;
        let method = method(request.method());
        let parent =
            shared.propagator.extract_with_context(&Context::new(), &HeaderExtractor(request.headers()));
        let span = shared.tracer.span_builder(method).with_kind(SpanKind::Server);
        let span = span.with_attributes([KeyValue::new(word::METHOD, method)]);
        let context = parent.with_span(span.start_with_context(&shared.tracer, &parent));
        let observer = request.extensions().get::<Observer>().cloned().unwrap_or_default();
        request.extensions_mut().insert(observer.clone());
        request.extensions_mut().insert(RequestContext(context.clone()));
        Self { tracing, context, method, observer }
    }

    fn answered<R>(&self, response: &Response<R>) {
        let span = self.context.span();
        if !span.is_recording() {
            return;
        }
        let outcome = self.observer.outcome().unwrap_or(word::PASSED);
        span.set_attribute(KeyValue::new(word::OUTCOME, outcome));
        span.set_attribute(KeyValue::new(word::STATUS, i64::from(response.status().as_u16())));
        if response.status().is_server_error() {
            span.set_status(Status::error(""));
        }
        if outcome == "replayed"
            && let Some(first) =
                self.observer.record().and_then(|record| self.tracing.shared.first_runs.of(&record))
        {
            span.add_link(first, Vec::new());
        }
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        let span = self.context.span();
        if span.is_recording() {
            if let Some(route) = self.observer.route() {
                span.set_attribute(KeyValue::new(word::ROUTE, route.to_owned()));
                span.update_name(format!("{} {route}", self.method));
            }
            if let Some(record) = self.observer.record() {
                span.set_attribute(KeyValue::new(word::RECORD, record.to_string()));
            }
        }
        span.end();
    }
}
