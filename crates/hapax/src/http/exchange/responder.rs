//! [`Responder`]: how one route answers, and how its answers are counted.

use std::sync::Arc;

use bytes::Bytes;
use hapax_core::Recorded;
use http::header::TRAILER;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response};

use super::refusal;
use crate::engine::Engine;
use crate::http::body::ResponseBody;
use crate::http::capture;
use crate::http::grpc;
use crate::http::layer::{LayerState, Route};
use crate::http::observer::Observer;
use crate::http::policy::Classifier;
use crate::http::problem::{self, Problem};
use crate::http::rules::Rules;
use crate::observe;
use crate::policy::Policy;

static KEY_DERIVED: HeaderName = HeaderName::from_static("idempotency-key-derived");

/// The route of one request, and its observer if it has one.
#[derive(Clone, Debug)]
pub(super) struct Responder {
    pub(super) shared: Arc<LayerState>,
    route: usize,
    pub(super) observer: Option<Observer>,
    /// Whether the request had no key and one was derived from its body (K-11).
    pub(super) is_key_derived: bool,
}

impl Responder {
    pub(super) fn new(shared: Arc<LayerState>, route: usize, extensions: &Extensions) -> Self {
        Self { shared, route, observer: extensions.get().cloned(), is_key_derived: false }
    }

    pub(super) fn route(&self) -> &Route {
        self.shared.route(self.route)
    }

    pub(super) fn policy(&self) -> &Rules {
        &self.route().policy
    }

    /// The rules for the engine; a derived key counts for its window only.
    pub(super) fn engine_policy(&self) -> Policy {
        let policy = self.policy();
        let derived = policy.key_source.derived.as_ref().filter(|_| self.is_key_derived);
        match derived.and_then(|derived| derived.window) {
            Some(window) => policy.engine.retention(window),
            None => policy.engine,
        }
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.shared.hapax.engine
    }

    pub(super) fn replay<R>(&self, request: &HeaderMap, recorded: Recorded) -> Response<ResponseBody<R>> {
        let policy = self.policy();
        self.count(observe::OutcomeLabel::Replayed);
        let mut response = match capture::replay(&policy.replay, request, recorded) {
            Ok(replayed) => {
                let (mut headers, mut trailers) = (replayed.headers, replayed.trailers);
                let is_grpc = policy.classifier == Classifier::Grpc;
                if !is_grpc {
                    announce(trailers.as_deref(), &mut headers);
                }
                let is_failed = is_grpc && grpc::is_failed(&headers, trailers.as_deref());
                if is_failed || problem::is_retried(replayed.status) {
                    self.forbid_retries(&mut headers, trailers.as_deref_mut());
                }
                let mut response = Response::new(ResponseBody::whole(replayed.body, trailers));
                *response.status_mut() = replayed.status;
                *response.headers_mut() = headers;
                response
            }
            Err(_not_replayable) => self.problem(&refusal::result_unavailable()).map(ResponseBody::from),
        };
        self.mark(&mut response, "accepted");
        response
    }

    /// Tells a client that retries automatically not to: its answer is final, or waits to be settled.
    pub(super) fn forbid_retries(&self, headers: &mut HeaderMap, trailers: Option<&mut HeaderMap>) {
        let policy = self.policy();
        if policy.classifier != Classifier::Grpc || !grpc::forbid_retries(headers, trailers) {
            policy.refusals.hint(false, headers);
        }
    }

    /// Refuses the request and counts it.
    pub(super) fn refuse<T: From<Bytes>>(&self, problem: &Problem) -> Response<T> {
        self.count(refusal::counted_as(problem));
        let mut response = self.problem(problem);
        self.mark(&mut response, "rejected");
        response.map(T::from)
    }

    /// A refusal in the form of the route, with its outcome for a layer in front.
    pub(super) fn problem(&self, problem: &Problem) -> Response<Bytes> {
        let policy = self.policy();
        let mut response = match policy.classifier {
            Classifier::Grpc => grpc::refusal(problem),
            Classifier::Status | Classifier::GraphQl => problem.response(&policy.refusals),
        };
        response.extensions_mut().insert(problem.outcome());
        response
    }

    /// Adds the dialect's field that tells whether the key was honoured, where it has one, and the one that tells that
    /// the key was derived.
    pub(super) fn mark<R>(&self, response: &mut Response<R>, result: &'static str) {
        if let Some(name) = &self.policy().result_header {
            response.headers_mut().insert(name.clone(), HeaderValue::from_static(result));
        }
        self.mark_derived(response);
    }

    /// Tells that the key was derived, where it was.
    pub(super) fn mark_derived<R>(&self, response: &mut Response<R>) {
        if self.is_key_derived {
            response.headers_mut().insert(KEY_DERIVED.clone(), HeaderValue::from_static("true"));
        }
    }

    pub(super) fn count(&self, outcome: observe::OutcomeLabel) {
        self.route().requests.count(outcome);
        if let Some(observer) = &self.observer {
            observer.set_outcome(&self.route().label, outcome);
        }
    }
}

/// Names the trailers in `Trailer`: HTTP/1.1 sends only those that it names.
pub(super) fn announce(trailers: Option<&HeaderMap>, headers: &mut HeaderMap) {
    let Some(trailers) = trailers else { return };
    let names: Vec<&str> = trailers.keys().map(HeaderName::as_str).collect();
    if let Ok(names) = HeaderValue::try_from(names.join(", ")) {
        // A full map goes without the field.
        let _full = headers.try_insert(TRAILER, names);
    }
}
