//! The layer in force. Every request asks whether it is still the same, so that a reload changes what the next request
//! meets and no connection is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hapax::Hapax;
use hapax::http::settings::Text;
use hapax::http::{HttpPolicy, Idempotency, IdempotencyLayer};
use http::{HeaderName, Request, request};
use parking_lot::RwLock;
use tower_layer::Layer;
use tower_service::Service;

use super::access_log::{AccessLog, AccessLogger};
use super::callouts::{Callouts, principal_in};
use super::operation_headers::OperationHeaders;
use super::paths::Unambiguous;
use super::protection::{self, Routing};
use crate::config::{Config, Flags, Route};
use crate::proxy::UpstreamService;
use crate::records::retention::retention_of;
use crate::trace::{Traced, TracedUpstream, Tracing};

/// What answers one request.
type Answering =
    AccessLog<Unambiguous<Traced<Idempotency<OperationHeaders<TracedUpstream<UpstreamService>>>>>>;

/// The layer in force and the configuration that it is made of.
pub(super) struct Routes {
    parts: Parts,
    current: RwLock<Current>,
    /// How often that has changed.
    changes: AtomicUsize,
}

/// What answers the requests of one connection: a copy of what is in force, made anew when that has changed.
pub(super) struct InForce {
    routes: Arc<Routes>,
    changes: usize,
    answering: Answering,
}

impl Clone for InForce {
    /// For another connection, which begins with what is in force by then.
    fn clone(&self) -> Self {
        self.routes.in_force()
    }
}

impl<B> Service<Request<B>> for InForce
where
    Answering: Service<Request<B>>,
{
    type Response = <Answering as Service<Request<B>>>::Response;
    type Error = <Answering as Service<Request<B>>>::Error;
    type Future = <Answering as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.changes != self.routes.changes.load(Ordering::Acquire) {
            *self = self.routes.in_force();
        }
        self.answering.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.answering.call(request)
    }
}

/// What every layer is made of, whatever its routes.
pub(super) struct Parts {
    pub(super) hapax: Hapax,
    pub(super) forward: UpstreamService,
    pub(super) callouts: Callouts,
    pub(super) tracing: Option<Tracing>,
    pub(super) access_logger: AccessLogger,
}

struct Current {
    layer: IdempotencyLayer,
    answering: Answering,
    config: Arc<Config>,
}

impl Routes {
    pub(super) fn new(parts: Parts, config: Config) -> Self {
        let layer = parts.layer(&config);
        let current = parts.current(layer, Arc::new(config));
        Self { parts, current: RwLock::new(current), changes: AtomicUsize::new(0) }
    }

    /// What answers requests, from now on and after every change.
    pub(super) fn in_force(self: &Arc<Self>) -> InForce {
        // First: what changes in between is noticed by the next request.
        let changes = self.changes.load(Ordering::Acquire);
        InForce { routes: self.clone(), changes, answering: self.current.read().answering.clone() }
    }

    /// What is in force.
    pub(super) fn config(&self) -> Arc<Config> {
        self.current.read().config.clone()
    }

    /// How long the result of an operation is kept.
    pub(super) fn retention_of(&self, operation: &str) -> Duration {
        let current = self.current.read();
        retention_of(operation, &current.layer, &current.config.routes)
    }

    /// Reads the configuration again. Whatever is wrong with it, something stays in force: what was.
    pub(super) fn reload(&self, flags: &Flags) {
        let before = self.config();
        let config = match before.reload(flags, std::env::vars_os()) {
            Ok(config) => config,
            Err(failure) => {
                tracing::error!("the routes stay as they were: {}", failure.text());
                return;
            }
        };
        for risk in config.risks() {
            tracing::warn!("{risk}");
        }
        for section in needing_restart(&before, &config) {
            tracing::warn!(section, "this changed and takes effect after a restart");
        }
        // What callers have used up stays used up.
        let in_force = self.current.read().layer.clone();
        let layer = self.parts.layer(&config).in_place_of(&in_force);
        let removed = protection::removed(
            &Routing { layer: &in_force, routes: &before.routes },
            &Routing { layer: &layer, routes: &config.routes },
        );
        for loss in removed {
            tracing::warn!("this reload removes protection: {loss}");
        }
        let routes = config.routes.len();
        // Only the routes have changed; the rest is told as it is in force.
        let config = Config { routes: config.routes, ..Config::clone(&before) };
        *self.current.write() = self.parts.current(layer, Arc::new(config));
        self.changes.fetch_add(1, Ordering::Release);
        tracing::info!(routes, "the routes are read again");
    }
}

impl Parts {
    fn layer(&self, config: &Config) -> IdempotencyLayer {
        config.layer(&self.hapax, |route| with_callouts(route, &self.callouts))
    }

    fn current(&self, layer: IdempotencyLayer, config: Arc<Config>) -> Current {
        let upstream = TracedUpstream::new(self.forward.clone(), self.tracing.clone());
        let traced = Traced::new(layer.layer(OperationHeaders::new(upstream)), self.tracing.clone());
        let unambiguous = Unambiguous::new(traced, layer.clone());
        let answering = AccessLog::new(unambiguous, self.access_logger.clone());
        Current { layer, answering, config }
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
        // What a caller writes there is no name.
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

/// The headers that may hold a key where this policy is in force.
fn key_names(policy: &HttpPolicy) -> Vec<HeaderName> {
    let said = policy.settings();
    let names = said.header.iter().chain(said.aliases.iter().flatten());
    names.map(|Text(name)| name.clone()).collect()
}

/// The sections that are not read again, and differ.
fn needing_restart(before: &Config, after: &Config) -> Vec<String> {
    // What is shown of a store leaves out most that is said in its URL.
    let is_another_store = before.store != after.store;
    let (before, after) = (before.document(), after.document());
    let sections = before.as_object().into_iter().flatten();
    sections
        .filter(|(name, said)| match name.as_str() {
            "routes" => false,
            "store" if is_another_store => true,
            _ => after.get(*name) != Some(*said),
        })
        .map(|(name, _)| name.clone())
        .collect()
}
