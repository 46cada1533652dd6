//! [`Watched`]: how long each request took and what became of it, measured always and logged where somebody wants that.
//!
//! It looks at no key, path, query or body. A request is over with the head of its answer: one that is recorded is whole
//! by then, and one that merely passes may go on for hours.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hapax::http::{Code, Observer};
use hapax::observe::UNREACHABLE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use metrics::Histogram;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::telemetry::{PASSED, REQUEST_SECONDS, REQUESTS_LOGGED};

/// What became of a request whose caller went away before the answer.
const GONE: &str = "gone";

/// Watches the requests of a service.
#[derive(Clone, Debug)]
pub(super) struct Watched<S> {
    inner: S,
    watch: Watch,
}

/// What is done with what is seen.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    is_logged: bool,
    usual: Arc<[(&'static str, Histogram)]>,
}

/// What becomes of nearly all requests. Their histograms are held: to look one up by its label takes memory and a search.
const USUAL: [&str; 3] = [PASSED, "replayed", "ran"];

impl Watch {
    /// Measures, and logs where `is_logged`. Metrics must be recorded by now.
    pub(super) fn new(is_logged: bool) -> Self {
        Self { is_logged, usual: USUAL.map(|outcome| (outcome, histogram(outcome))).into() }
    }

    fn took(&self, outcome: &'static str, span: Duration) {
        match self.usual.iter().find(|(usual, _)| *usual == outcome) {
            Some((_, histogram)) => histogram.record(span),
            None => histogram(outcome).record(span),
        }
    }
}

fn histogram(outcome: &'static str) -> Histogram {
    metrics::histogram!(REQUEST_SECONDS, "outcome" => outcome)
}

impl<S> Watched<S> {
    pub(super) fn new(inner: S, watch: Watch) -> Self {
        Self { inner, watch }
    }
}

impl<S, B, R> Service<Request<B>> for Watched<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible>,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = Watching<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let begun = Instant::now();
        // Nothing is asked about requests that are never covered: most of those that pass cost nothing more.
        let observer = is_coverable(request.method()).then(Observer::default);
        if let Some(observer) = &observer {
            request.extensions_mut().insert(observer.clone());
        }
        let line = self.watch.is_logged.then(|| Box::new(Line::new(&request, observer.clone(), begun)));
        Watching { answer: self.inner.call(request), watch: self.watch.clone(), begun, observer, line }
    }
}

/// Whether a policy could be for such a request.
fn is_coverable(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT].contains(method)
}

pin_project! {
    /// The answer to a request that is watched.
    pub(super) struct Watching<F> {
        #[pin]
        answer: F,
        watch: Watch,
        begun: Instant,
        observer: Option<Observer>,
        line: Option<Box<Line>>,
    }
}

impl<F, R> Future for Watching<F>
where
    F: Future<Output = Result<Response<R>, Infallible>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(response) = ready!(this.answer.poll(cx));
        let problem = response.extensions().get::<Code>().copied();
        let passed = if problem == Some(Code::UpstreamUnavailable) { UNREACHABLE } else { PASSED };
        let outcome = this.observer.as_ref().and_then(Observer::outcome).unwrap_or(passed);
        this.watch.took(outcome, this.begun.elapsed());
        if let Some(mut line) = this.line.take() {
            line.ended = Some(Ended { outcome, status: response.status(), problem });
        }
        Poll::Ready(Ok(response))
    }
}

/// The line about one request. It is logged when this goes, also when the caller does first.
struct Line {
    id: Option<HeaderValue>,
    method: Method,
    observer: Option<Observer>,
    begun: Instant,
    ended: Option<Ended>,
}

/// How a request was answered.
struct Ended {
    outcome: &'static str,
    status: StatusCode,
    /// The refusal that the answer is.
    problem: Option<Code>,
}

impl Line {
    fn new<B>(request: &Request<B>, observer: Option<Observer>, begun: Instant) -> Self {
        let id = request.headers().get("x-request-id").cloned();
        Self { id, method: request.method().clone(), observer, begun, ended: None }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let (observer, ended) = (self.observer.as_ref(), self.ended.as_ref());
        let gone = || observer.and_then(Observer::outcome).unwrap_or(GONE);
        tracing::info!(
            target: REQUESTS_LOGGED,
            request_id = self.id.as_ref().and_then(|id| id.to_str().ok()),
            method = self.method.as_str(),
            route = observer.and_then(Observer::route),
            outcome = ended.map_or_else(gone, |ended| ended.outcome),
            status = ended.map(|ended| ended.status.as_u16()),
            problem = ended.and_then(|ended| ended.problem).map(Code::name),
            ms = self.begun.elapsed().as_secs_f64() * 1000.0,
            record = observer.and_then(Observer::record).map(tracing::field::display),
            "request",
        );
    }
}
