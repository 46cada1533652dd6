//! The current layer. Interval request checks whether it was replaced, so that a reload takes effect for the next request and
//! closes no connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hapax::Hapax;
use hapax::http::settings::Text;
use hapax::http::{HttpPolicy, Idempotency, IdempotencyLayer, KeyPlace};
use http::{HeaderName, Request, request};
use parking_lot::RwLock;
use tower_layer::Layer;
use tower_service::Service;

use super::access_log::{AccessLog, AccessLogger};
use super::callouts::{Callouts, principal_in};
use super::operation_headers::OperationHeaders;
use super::paths::AmbiguousPathGuard;
use super::protection::{self, Routing};
use crate::config::{Config, Flags, Route};
use crate::proxy::UpstreamService;
use crate::retention::retention_of;
use crate::trace::{Traced, TracedUpstream, Tracing};

/// The stack of services for one request.
type RequestService =
    AccessLog<AmbiguousPathGuard<Traced<Idempotency<OperationHeaders<TracedUpstream<UpstreamService>>>>>>;

/// The current layer and its configuration.
pub(super) struct Routes {
    components: Components,
    current: RwLock<Current>,
    /// The number of reloads.
    changes: AtomicUsize,
}

/// The service of one connection: a clone of the current stack, renewed after a reload.
pub(super) struct ConnectionService {
    routes: Arc<Routes>,
    changes: usize,
    service: RequestService,
}

impl Clone for ConnectionService {
    /// For another connection, with the stack that is current by then.
    fn clone(&self) -> Self {
        self.routes.service()
    }
}

impl<B> Service<Request<B>> for ConnectionService
where
    RequestService: Service<Request<B>>,
{
    type Response = <RequestService as Service<Request<B>>>::Response;
    type Error = <RequestService as Service<Request<B>>>::Error;
    type Future = <RequestService as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.changes != self.routes.changes.load(Ordering::Acquire) {
            *self = self.routes.service();
        }
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.service.call(request)
    }
}

/// The components that do not depend on routes.
pub(super) struct Components {
    pub(super) hapax: Hapax,
    pub(super) forward: UpstreamService,
    pub(super) callouts: Callouts,
    pub(super) tracing: Option<Tracing>,
    pub(super) access_logger: AccessLogger,
}

struct Current {
    layer: IdempotencyLayer,
    service: RequestService,
    config: Arc<Config>,
}

impl Routes {
    pub(super) fn new(components: Components, config: Config) -> Self {
        let layer = components.layer(&config);
        let current = components.current(layer, Arc::new(config));
        Self { components, current: RwLock::new(current), changes: AtomicUsize::new(0) }
    }

    /// The service for a new connection.
    pub(super) fn service(self: &Arc<Self>) -> ConnectionService {
        // Loaded first: a reload in between is noticed by the next request.
        let changes = self.changes.load(Ordering::Acquire);
        ConnectionService { routes: self.clone(), changes, service: self.current.read().service.clone() }
    }

    /// The current configuration.
    pub(super) fn config(&self) -> Arc<Config> {
        self.current.read().config.clone()
    }

    /// The retention of an operation's result.
    pub(super) fn retention_of(&self, operation: &str) -> Duration {
        let current = self.current.read();
        retention_of(operation, &current.layer, &current.config.routes)
    }

    /// Reloads the configuration. If it is invalid, nothing changes.
    pub(super) fn reload(&self, flags: &Flags) {
        let before = self.config();
        let config = match before.reload(flags, std::env::vars_os()) {
            Ok(config) => config,
            Err(failure) => {
                tracing::error!("reload failed; the routes are unchanged: {}", failure.text());
                return;
            }
        };
        for risk in config.risks() {
            tracing::warn!("{risk}");
        }
        for section in needing_restart(&before, &config) {
            tracing::warn!(section, "a changed section takes effect after a restart");
        }
        // The callers' usage of their limits is kept.
        let current = self.current.read().layer.clone();
        let layer = self.components.layer(&config).in_place_of(&current);
        let removed = protection::removed(
            &Routing { layer: &current, routes: &before.routes },
            &Routing { layer: &layer, routes: &config.routes },
        );
        for loss in removed {
            tracing::warn!("this reload removes protection: {loss}");
        }
        let routes = config.routes.len();
        // Only the routes are replaced.
        let config = Config { routes: config.routes, ..Config::clone(&before) };
        *self.current.write() = self.components.current(layer, Arc::new(config));
        self.changes.fetch_add(1, Ordering::Release);
        tracing::info!(routes, "routes reloaded");
    }
}

impl Components {
    fn layer(&self, config: &Config) -> IdempotencyLayer {
        config.layer(&self.hapax, |route| with_callouts(route, &self.callouts))
    }

    fn current(&self, layer: IdempotencyLayer, config: Arc<Config>) -> Current {
        let upstream = TracedUpstream::new(self.forward.clone(), self.tracing.clone());
        let traced = Traced::new(layer.layer(OperationHeaders::new(upstream)), self.tracing.clone());
        let unambiguous = AmbiguousPathGuard::new(traced, layer.clone());
        let service = AccessLog::new(unambiguous, self.access_logger.clone());
        Current { layer, service, config }
    }
}

fn with_callouts(route: &Route, callouts: &Callouts) -> HttpPolicy {
    let mut policy = route.policy.clone();
    if let Some(url) = &route.reconcile {
        let (callouts, url) = (callouts.clone(), url.clone());
        policy = policy.reconcile(move |question| callouts.clone().reconcile(url.clone(), question));
    }
    if let Some(url) = &route.authorise {
        let (callouts, url, mut left_out) = (callouts.clone(), url.clone(), key_names(&policy));
        // A client could forge this field.
        left_out.extend(route.authorise_principal.clone());
        let ask = move |head: &request::Parts| callouts.clone().authorise(url.clone(), head, &left_out);
        policy = match route.authorise_principal.clone() {
            None => policy.authorise(move |head| {
                let answer = ask(head);
                async move { answer.await.map(drop) }
            }),
            Some(header) => policy.authorise_as(move |head| {
                let (answer, header) = (ask(head), header.clone());
                async move { answer.await.map(|answer| principal_in(&answer, &header)) }
            }),
        };
    }
    policy
}

/// The headers that a key may be in under this policy.
fn key_names(policy: &HttpPolicy) -> Vec<HeaderName> {
    let settings = policy.settings();
    let places = settings.key_from.iter().flatten();
    let name = |place: &Text<KeyPlace>| match &place.0 {
        KeyPlace::Header(name) => Some(name.clone()),
        KeyPlace::Query(_) | KeyPlace::Json(_) | KeyPlace::Form(_) => None,
    };
    places.filter_map(name).collect()
}

/// The sections that differ and are not reloaded.
fn needing_restart(before: &Config, after: &Config) -> Vec<String> {
    // The document leaves out most options of a store URL.
    let is_another_store = before.store != after.store;
    let (before, after) = (before.document(), after.document());
    let sections = before.as_object().into_iter().flatten();
    sections
        .filter(|(name, value)| match name.as_str() {
            "routes" => false,
            "store" if is_another_store => true,
            _ => after.get(*name) != Some(*value),
        })
        .map(|(name, _)| name.clone())
        .collect()
}
