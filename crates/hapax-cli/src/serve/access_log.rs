//! [`AccessLog`]: the duration and the outcome of each request, always measured, and logged if configured.
//!
//! It reads no key, path, query or body. A request ends with the head of its response: a recorded response is complete by
//! then, and one that only passes through may stream for hours.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hapax::http::{Code, Observer};
use hapax::observe::UNREACHABLE;
use hapax_admin::metric_names::{PASSED, REQUEST_SECONDS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use metrics::Histogram;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::telemetry::REQUESTS_LOGGED;

/// The outcome of a request whose client disconnected before the response.
const CLIENT_GONE: &str = "gone";

/// Measures and logs the requests of a service.
#[derive(Clone, Debug)]
pub(super) struct AccessLog<S> {
    inner: S,
    logger: AccessLogger,
}

/// Records durations, and writes the log if configured.
#[derive(Clone, Debug)]
pub(super) struct AccessLogger {
    is_logged: bool,
    common: Arc<[(&'static str, Histogram)]>,
}

/// The most frequent outcomes. Their histograms are kept: a lookup by label allocates and searches.
const COMMON_OUTCOMES: [&str; 3] = [PASSED, "replayed", "ran"];

impl AccessLogger {
    /// The metrics recorder must be installed before.
    pub(super) fn new(is_logged: bool) -> Self {
        Self { is_logged, common: COMMON_OUTCOMES.map(|outcome| (outcome, histogram(outcome))).into() }
    }

    fn record(&self, outcome: &'static str, span: Duration) {
        match self.common.iter().find(|(common, _)| *common == outcome) {
            Some((_, histogram)) => histogram.record(span),
            None => histogram(outcome).record(span),
        }
    }
}

fn histogram(outcome: &'static str) -> Histogram {
    metrics::histogram!(REQUEST_SECONDS, "outcome" => outcome)
}

impl<S> AccessLog<S> {
    pub(super) fn new(inner: S, logger: AccessLogger) -> Self {
        Self { inner, logger }
    }
}

impl<S, B, R> Service<Request<B>> for AccessLog<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible>,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let started = Instant::now();
        // Requests that no policy can cover need no observer.
        let observer = is_coverable(request.method()).then(Observer::default);
        if let Some(observer) = &observer {
            request.extensions_mut().insert(observer.clone());
        }
        let entry = self.logger.is_logged.then(|| Box::new(Entry::new(&request, observer.clone(), started)));
        ResponseFuture {
            response: self.inner.call(request),
            logger: self.logger.clone(),
            started,
            observer,
            entry,
        }
    }
}

/// Whether a policy can cover a request with this method.
fn is_coverable(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT].contains(method)
}

pin_project! {
    /// The response to a request.
    pub(super) struct ResponseFuture<F> {
        #[pin]
        response: F,
        logger: AccessLogger,
        started: Instant,
        observer: Option<Observer>,
        entry: Option<Box<Entry>>,
    }
}

impl<F, R> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, Infallible>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(response) = ready!(this.response.poll(cx));
        let problem = response.extensions().get::<Code>().copied();
        let passed = if problem == Some(Code::UpstreamUnavailable) { UNREACHABLE } else { PASSED };
        let outcome = this.observer.as_ref().and_then(Observer::outcome).unwrap_or(passed);
        this.logger.record(outcome, this.started.elapsed());
        if let Some(mut entry) = this.entry.take() {
            entry.completion = Some(Completion { outcome, status: response.status(), problem });
        }
        Poll::Ready(Ok(response))
    }
}

/// The log entry of one request, written on drop, also if the client disconnects first.
struct Entry {
    id: Option<HeaderValue>,
    method: Method,
    observer: Option<Observer>,
    started: Instant,
    completion: Option<Completion>,
}

/// The end of a request with a response.
struct Completion {
    outcome: &'static str,
    status: StatusCode,
    /// The code of a refusal.
    problem: Option<Code>,
}

impl Entry {
    fn new<B>(request: &Request<B>, observer: Option<Observer>, started: Instant) -> Self {
        let id = request.headers().get("x-request-id").cloned();
        Self { id, method: request.method().clone(), observer, started, completion: None }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let (observer, completion) = (self.observer.as_ref(), self.completion.as_ref());
        let without_response = || observer.and_then(Observer::outcome).unwrap_or(CLIENT_GONE);
        tracing::info!(
            target: REQUESTS_LOGGED,
            request_id = self.id.as_ref().and_then(|id| id.to_str().ok()),
            method = self.method.as_str(),
            route = observer.and_then(Observer::route),
            outcome = completion.map_or_else(without_response, |completion| completion.outcome),
            status = completion.map(|completion| completion.status.as_u16()),
            problem = completion.and_then(|completion| completion.problem).map(Code::name),
            ms = self.started.elapsed().as_secs_f64() * 1000.0,
            record = observer.and_then(Observer::record).map(tracing::field::display),
            "request",
        );
    }
}
