//! [`TracedUpstream`]: the span of the upstream call, propagated to the upstream in `traceparent`.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use futures_util::future::Either;
use hapax::http::{Outcome, Protection};
use http::{HeaderMap, HeaderName, Request, Response};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::HeaderInjector;
use tower_service::Service;

use super::{RequestContext, Tracing, method, word};

const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Traces upstream calls, if tracing is enabled.
#[derive(Clone, Debug)]
pub(crate) struct TracedUpstream<S> {
    inner: S,
    tracing: Option<Tracing>,
}

impl<S> TracedUpstream<S> {
    pub(crate) fn new(inner: S, tracing: Option<Tracing>) -> Self {
        Self { inner, tracing }
    }
}

impl<S, B, R> Service<Request<B>> for TracedUpstream<S>
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
        let context = request.extensions_mut().remove::<RequestContext>();
        let (Some(tracing), Some(RequestContext(parent))) = (&self.tracing, context) else {
            return Either::Left(self.inner.call(request));
        };
        let run = Protection::of(request.extensions()).and_then(Protection::context);
        if let Some(run) = run {
            parent.span().set_attribute(KeyValue::new(word::ATTEMPT, i64::from(run.attempt())));
            tracing.shared.first_runs.ran(run.id(), parent.span().span_context().clone());
        }
        let span = CallSpan::begin(tracing, &parent, &mut request);
        let answer = self.inner.call(request);
        Either::Right(Box::pin(async move {
            let response = answer.await?;
            span.answered(&response);
            Ok(response)
        }))
    }
}

/// The span of one upstream call. It ends on drop.
struct CallSpan(Context);

impl CallSpan {
    fn begin<B>(tracing: &Tracing, parent: &Context, request: &mut Request<B>) -> Self {
        let shared = &tracing.shared;
        let method = method(request.method());
        let span = shared.tracer.span_builder(method).with_kind(SpanKind::Client);
        let mut attributes = vec![KeyValue::new(word::METHOD, method)];
        if let Some(run) = Protection::of(request.extensions()).and_then(Protection::context) {
            attributes.push(KeyValue::new(word::ATTEMPT, i64::from(run.attempt())));
            attributes.push(KeyValue::new(word::RECORD, run.id().to_string()));
        }
        let context =
            parent.with_span(span.with_attributes(attributes).start_with_context(&shared.tracer, parent));
        shared.propagator.inject_context(&context, &mut HeaderInjector(request.headers_mut()));
        drop_empty_state(request.headers_mut());
        Self(context)
    }

    /// Responses of the sidecar itself have an outcome: the upstream has sent none.
    fn answered<R>(&self, response: &Response<R>) {
        let span = self.0.span();
        match response.extensions().get::<Outcome>() {
            None => span.set_attribute(KeyValue::new(word::STATUS, i64::from(response.status().as_u16()))),
            Some(outcome) => {
                let what = if *outcome == Outcome::Release { "not_sent" } else { "no_answer" };
                span.set_attribute(KeyValue::new(word::ERROR, what));
                span.set_status(Status::error(what));
            }
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        self.0.span().end();
    }
}

/// Removes an empty field, which the propagator writes for an empty state and some servers reject.
fn drop_empty_state(headers: &mut HeaderMap) {
    if headers.get(&TRACESTATE).is_some_and(http::HeaderValue::is_empty) {
        headers.remove(&TRACESTATE);
    }
}
