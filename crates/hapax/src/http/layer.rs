//! [`IdempotencyLayer`]: the routes with their policies, and the state that all their requests share.

use std::borrow::Borrow;
use std::cell::LazyCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, request};
use tower_layer::Layer;

use super::body::read::BodyBudget;
use super::canonical::{self, header::Fields};
use super::document::PolicyDocument;
use super::grpc;
use super::limits::LimitCounters;
use super::path::PathPattern;
use super::policy::{Classifier, HttpPolicy, KeyMode, is_coverable};
use super::reach::{self, UnreachableRoute};
use super::rules::Rules;
use super::service::Idempotency;
use crate::hapax::Hapax;
use crate::observe::Requests;

/// The default budget for buffered request bodies.
const BODY_BUDGET: usize = 256 << 20;

/// The `surface` label of HTTP.
const SURFACE: &str = "http";

/// The label of requests that match no named route.
const OTHER_REQUESTS: &str = "*";

/// Makes an HTTP service safe to retry: a [`tower_layer::Layer`] for a whole router or one route.
///
/// Put it inside of authentication, authorisation and rate limits: their responses are never stored, and they check
/// every retry. Put the layer that turns panics into responses outside of it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use axum::{Router, routing::post};
/// use hapax::http::{HttpPolicy, IdempotencyLayer, KeyMode};
/// use hapax::{Hapax, MemoryStore};
///
/// let hapax = Hapax::new(MemoryStore::new());
/// let idempotency = IdempotencyLayer::new(&hapax)
///     .route("/payments/**", HttpPolicy::default().key(KeyMode::Required));
///
/// let app: Router = Router::new().route("/payments", post(|| async { "paid" })).layer(idempotency);
/// # });
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct IdempotencyLayer {
    pub(super) shared: Arc<LayerState>,
}

/// The state shared by all requests.
#[derive(Clone, Debug)]
pub(super) struct LayerState {
    pub(super) hapax: Hapax,
    /// The first that matches applies; the last one matches everything.
    routes: Vec<Route>,
    pub(super) budget: Arc<BodyBudget>,
    pub(super) limits: Arc<LimitCounters>,
    warned: Arc<AtomicBool>,
}

/// A policy and the requests that it applies to.
#[derive(Clone, Debug)]
pub(super) struct Route {
    path: Option<PathPattern>,
    pub(super) label: Arc<str>,
    pub(super) requests: Arc<Requests>,
    pub(super) policy: Rules,
}

impl IdempotencyLayer {
    /// The default policy for every path, with the durations that `hapax` was built with.
    pub fn new(hapax: impl Borrow<Hapax>) -> Self {
        let hapax = hapax.borrow();
        let rest = Route::new(None, HttpPolicy::default().rules(&hapax.policy));
        let shared = LayerState {
            hapax: hapax.clone(),
            routes: vec![rest],
            budget: BodyBudget::new(BODY_BUDGET),
            limits: Arc::new(LimitCounters::new()),
            warned: Arc::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The policy of requests whose path no [route](Self::route) matches. Durations that it does not set are those that
    /// `hapax` was built with.
    pub fn policy(mut self, policy: HttpPolicy) -> Self {
        let rules = policy.rules(&self.shared.hapax.policy);
        if let Some(rest) = self.change().routes.last_mut() {
            rest.policy = rules;
        }
        self
    }

    /// The policy of requests whose path matches and whose method is listed in it. Of several such routes, the first
    /// applies. Requests for the path with a method that no route lists pass unchanged: [`policy`](Self::policy) does
    /// not cover them.
    ///
    /// A route whose requests are all matched by earlier routes is never reached; [`check`](Self::check) finds it.
    ///
    /// Durations that the policy does not set are those that `hapax` was built with.
    ///
    /// # Panics
    /// When a path given as text is not a valid pattern. Parse text from configuration into a [`PathPattern`] first.
    pub fn route<P>(mut self, path: P, policy: HttpPolicy) -> Self
    where
        P: TryInto<PathPattern>,
        P::Error: fmt::Display,
    {
        let path = path.try_into().unwrap_or_else(|error| panic!("the path of a route: {error}"));
        let rules = policy.rules(&self.shared.hapax.policy);
        let routes = &mut self.change().routes;
        routes.insert(routes.len() - 1, Route::new(Some(path), rules));
        self
    }

    /// Checks that every route can be reached. A route that cannot is logged when the layer is put around a service; an
    /// application that reads routes from a file should refuse it.
    ///
    /// # Errors
    /// With the first route that no request reaches, because earlier routes match all its requests.
    pub fn check(&self) -> Result<(), UnreachableRoute> {
        let named = self.routes().iter().filter_map(|route| Some((route.path.as_ref()?, &route.policy)));
        reach::first_unreachable(named).map_or(Ok(()), Err)
    }

    /// The budget for request bodies buffered at a time, for all requests together. Default 256 MiB.
    pub fn body_budget(mut self, bytes: usize) -> Self {
        self.change().budget = BodyBudget::new(bytes);
        self
    }

    /// Replaces another layer: shares its counters, so that limits and the budget for bodies hold across the two. For
    /// applications that reload routes while requests are running.
    pub fn in_place_of(mut self, other: &Self) -> Self {
        let shared = self.change();
        shared.budget = other.shared.budget.clone();
        shared.limits = other.shared.limits.clone();
        self
    }

    /// Which policy covers a request: the index of its [route](Self::route) in the order in which they were added, or
    /// the number of routes for the default [policy](Self::policy). `None` for a request that passes unchanged.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use hapax::http::{HttpPolicy, IdempotencyLayer};
    /// use hapax::{Hapax, MemoryStore};
    /// use http::Method;
    ///
    /// let layer = IdempotencyLayer::new(Hapax::new(MemoryStore::new()))
    ///     .route("/payments/**", HttpPolicy::default());
    /// assert_eq!(layer.position_of(&Method::POST, "/payments/7"), Some(0));
    /// assert_eq!(layer.position_of(&Method::POST, "/orders"), Some(1));
    /// assert_eq!(layer.position_of(&Method::GET, "/payments/7"), None);
    /// # });
    /// ```
    pub fn position_of(&self, method: &Method, path: &str) -> Option<usize> {
        match self.shared.find(method, || path) {
            RouteMatch::Covered(index) => Some(index),
            RouteMatch::Uncovered(_) | RouteMatch::None => None,
        }
    }

    /// Whether a request to this path is claimed or refused, judging by its head; otherwise it passes unchanged. For a
    /// server that must find out how another interpretation of the path would be treated.
    pub fn protects(&self, method: &Method, path: &str, headers: &HeaderMap) -> bool {
        match self.shared.find(method, || path) {
            RouteMatch::Covered(index) => self.shared.route(index).policy.protects(headers),
            RouteMatch::Uncovered(_) | RouteMatch::None => false,
        }
    }

    /// The policies of all routes, to be published for the clients of the API.
    pub fn document(&self) -> PolicyDocument {
        PolicyDocument::of(self.routes())
    }

    /// The same as a fragment of OpenAPI 3.1, to be merged into an API's own description: components for the key, the
    /// refusals and the response headers, and under `x-idempotency` which route uses which.
    pub fn openapi(&self) -> serde_json::Value {
        super::document::openapi(self.routes())
    }

    fn change(&mut self) -> &mut LayerState {
        Arc::make_mut(&mut self.shared)
    }

    fn routes(&self) -> &[Route] {
        &self.shared.routes
    }

    fn warn_once(&self) {
        if self.shared.warned.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(unreachable) = self.check() {
            tracing::warn!("{unreachable}");
        }
        let mut routes_by_warning: Vec<(&str, Vec<&str>)> = Vec::new();
        for route in self.routes() {
            for warning in route.policy.warnings() {
                match routes_by_warning.iter_mut().find(|(known, _)| *known == warning) {
                    Some((_, routes)) => routes.push(&route.label),
                    None => routes_by_warning.push((warning, vec![&route.label])),
                }
            }
        }
        for (warning, routes) in routes_by_warning {
            tracing::warn!(routes = routes.join(" "), "{warning}");
        }
    }
}

impl Route {
    fn new(path: Option<PathPattern>, policy: Rules) -> Self {
        let label: Arc<str> = path.as_ref().map_or(OTHER_REQUESTS.into(), |path| path.to_string().into());
        let path = path.map(|path| path.compared_by(policy.scope.path_case));
        Self { requests: Arc::new(Requests::new(SURFACE, &label)), label, path, policy }
    }

    /// Whether this is a gRPC call that no named route matches. It may be a stream, which must not be buffered (P-02).
    /// If a route is named or a key is required, declaring a request as gRPC does not bypass it.
    pub(super) fn is_unnamed_grpc_call(&self, fields: Fields<'_>) -> bool {
        self.path.is_none()
            && self.policy.key == KeyMode::Optional
            && self.policy.classifier != Classifier::Grpc
            && grpc::is_grpc(fields.first(&CONTENT_TYPE))
    }

    fn coverage_of(&self, method: &Method) -> MethodCoverage {
        let policy = &self.policy;
        match is_coverable(method) {
            true if policy.key == KeyMode::Off => MethodCoverage::Off,
            true if policy.methods.contains(method) => MethodCoverage::Covered,
            _ if policy.result_header.is_some() => MethodCoverage::Uncovered,
            _ => MethodCoverage::Unlisted,
        }
    }

    /// Whether it matches this path, for any method.
    fn matches_path(&self, path: &str) -> bool {
        self.path.as_ref().is_none_or(|pattern| pattern.matches(path))
    }

    /// Its path pattern; `None` for the default policy.
    pub(super) fn path(&self) -> Option<&PathPattern> {
        self.path.as_ref()
    }
}

impl LayerState {
    pub(super) fn route(&self, index: usize) -> &Route {
        &self.routes[index]
    }

    /// The route of a request. If no route covers the method, the path is not evaluated.
    ///
    /// The methods listed for a path are exactly those covered there: the default policy does not apply to a path that
    /// a route names.
    pub(super) fn find<'a>(&self, method: &Method, path: impl Fn() -> &'a str) -> RouteMatch {
        let Some((rest, named)) = self.routes.split_last() else { return RouteMatch::None };
        let path = LazyCell::new(|| canonical::path(path()));
        let mut uncovered = None;
        for (index, route) in named.iter().enumerate() {
            match route.coverage_of(method) {
                MethodCoverage::Unlisted => {}
                _ if !route.matches_path(&path) => {}
                MethodCoverage::Off => return RouteMatch::None,
                MethodCoverage::Covered => return RouteMatch::Covered(index),
                MethodCoverage::Uncovered => uncovered = uncovered.or(Some(index)),
            }
        }
        if let Some(index) = uncovered {
            return RouteMatch::Uncovered(index);
        }
        match rest.coverage_of(method) {
            MethodCoverage::Unlisted | MethodCoverage::Off => RouteMatch::None,
            _ if named.iter().any(|route| route.matches_path(&path)) => RouteMatch::None,
            MethodCoverage::Covered => RouteMatch::Covered(named.len()),
            MethodCoverage::Uncovered => RouteMatch::Uncovered(named.len()),
        }
    }
}

/// How a route treats a method.
enum MethodCoverage {
    /// Requests pass unchanged, and no later route applies.
    Off,
    Covered,
    /// It is not covered, and callers who send a key are informed.
    Uncovered,
    Unlisted,
}

/// The route of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RouteMatch {
    /// The index of the route that covers it.
    Covered(usize),
    /// The index of a route for the path that covers other methods only, which callers are informed of.
    Uncovered(usize),
    /// No route.
    None,
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        self.warn_once();
        Idempotency::new(inner, self.shared.clone())
    }
}

/// The path that the client sent, also inside a nested router.
pub(super) fn path_of<'a>(uri: &'a http::Uri, extensions: &'a http::Extensions) -> &'a str {
    uri_of(uri, extensions).path()
}

fn uri_of<'a>(uri: &'a http::Uri, extensions: &'a http::Extensions) -> &'a http::Uri {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(original)) = extensions.get() {
        return original;
    }
    let _ = extensions;
    uri
}

/// The path and the query that the client sent.
#[cfg(feature = "webhook")]
pub(super) fn target_of_parts(parts: &request::Parts) -> &str {
    uri_of(&parts.uri, &parts.extensions).path_and_query().map_or("", http::uri::PathAndQuery::as_str)
}

/// The path that the client sent, of a request in parts.
pub(super) fn path_of_parts(parts: &request::Parts) -> &str {
    path_of(&parts.uri, &parts.extensions)
}
