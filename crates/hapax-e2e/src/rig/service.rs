//! [`OrderService`]: the service behind a sidecar, with its effect log, planted defects, and a gate that holds handlers.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::effects::{EffectLog, KeyEffects};
use super::flaws::{self, Flaw, Flaws, SLOW};
use super::http::HttpReply;
use super::serve::{listener, serve_on_thread};

/// The path on which duplicates wait for the first one's answer.
pub(crate) const WAIT: &str = "/wait";
/// The path on which duplicates get a conflict.
pub(crate) const NOW: &str = "/now";

/// The fields of the service's answers that a replay must keep.
const KEPT: [&str; 3] = ["content-type", "location", "x-order"];

/// One of so many keys is refused the first time, as by a service that is busy: it takes no effect and may be retried.
const BUSY_EVERY: u64 = 16;
/// One of so many keys is answered with a final error.
const WRONG_EVERY: u64 = 7;
/// The key that planted defects are about. It is neither refused nor answered with an error.
const DEFECT_KEY: u64 = 9;

/// A defect of the service or its effect log that a rig must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum ServiceDefect {
    /// One operation takes effect twice.
    Doubled,
    /// The log holds another answer than the one that was given.
    Falsified,
    /// The log has lost one operation.
    Forgotten,
    /// One operation never ends.
    Endless,
}

/// An answer of the service, as far as a replay must repeat it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct OrderAnswer {
    pub(crate) status: u16,
    pub(crate) fields: [String; KEPT.len()],
    pub(crate) body: String,
}

impl OrderAnswer {
    pub(crate) fn new(key: u64, effect: u64) -> Self {
        let status = if key.is_multiple_of(WRONG_EVERY) { 404 } else { 201 };
        let fields = ["application/json".to_owned(), format!("/orders/{key}"), format!("{key}-{effect}")];
        Self { status, fields, body: format!("{{ \"order\":{key},  \"effect\":{effect} }}") }
    }
}

impl From<&HttpReply> for OrderAnswer {
    fn from(reply: &HttpReply) -> Self {
        let fields = KEPT.map(|name| reply.field(name).unwrap_or_default().to_owned());
        Self { status: reply.status, fields, body: String::from_utf8_lossy(&reply.body).into_owned() }
    }
}

/// Where the gate holds handlers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    /// It holds none.
    Open,
    /// Before the effect.
    BeforeEffect,
    /// After the effect and before the answer.
    BeforeAnswer,
}

/// How many handlers run, and how many of them the gate holds.
#[derive(Clone, Copy, Default, Debug)]
struct HandlerCounts {
    running: u64,
    held: u64,
}

/// A running service. It ends with the process.
#[derive(Clone)]
pub(crate) struct OrderService {
    pub(crate) address: SocketAddr,
    pub(crate) effects: Arc<EffectLog<OrderAnswer>>,
    defect: Option<ServiceDefect>,
    flaws: Option<Arc<Flaws>>,
    refused: Arc<Mutex<HashSet<u64>>>,
    seen: Arc<Mutex<HashSet<u64>>>,
    gate: Arc<watch::Sender<Gate>>,
    handlers: Arc<watch::Sender<HandlerCounts>>,
}

impl OrderService {
    pub(crate) fn start(defect: Option<ServiceDefect>) -> Result<Self> {
        Self::start_with(defect, None)
    }

    /// A service with the flaws of a seed.
    pub(crate) fn start_flaky(seed: u64) -> Result<Self> {
        Self::start_with(None, Some(Arc::new(Flaws::new(seed))))
    }

    fn start_with(defect: Option<ServiceDefect>, flaws: Option<Arc<Flaws>>) -> Result<Self> {
        let listener = listener()?;
        let service = Self {
            address: listener.local_addr()?,
            effects: Arc::default(),
            defect,
            flaws,
            refused: Arc::default(),
            seen: Arc::default(),
            gate: Arc::new(watch::Sender::new(Gate::Open)),
            handlers: Arc::default(),
        };
        let app = Router::new().route(WAIT, post(execute)).route(NOW, post(execute));
        let app = app.with_state(service.clone());
        serve_on_thread("upstream", listener, move || app)?;
        Ok(service)
    }

    /// Does something while the gate holds a handler. It is done all the same when `unless` ends first.
    pub(crate) async fn while_held<T>(
        &self,
        gate: Gate,
        unless: impl Future,
        action: impl Future<Output = T>,
    ) -> T {
        self.gate.send_replace(gate);
        if gate != Gate::Open {
            let holds = async {
                // The sender is in `self`, so it is not dropped.
                let _ = self.handlers.subscribe().wait_for(|handlers| handlers.held > 0).await;
            };
            tokio::select! {
                () = holds => {}
                _ = unless => {}
            }
        }
        let done = action.await;
        self.gate.send_replace(Gate::Open);
        done
    }

    /// Waits until no handler runs, for `patience` at most: the audit finds the keys of handlers that are left. Then the
    /// log is falsified, if that is the planted defect.
    pub(crate) async fn rest(&self, patience: Duration) {
        let mut handlers = self.handlers.subscribe();
        let _ = tokio::time::timeout(patience, handlers.wait_for(|handlers| handlers.running == 0)).await;
        let answers = match self.defect {
            Some(ServiceDefect::Falsified) => vec![OrderAnswer::new(DEFECT_KEY, u64::MAX)],
            Some(ServiceDefect::Forgotten) => Vec::new(),
            Some(ServiceDefect::Doubled | ServiceDefect::Endless) | None => return,
        };
        let effects = answers.len() as u64;
        self.effects.falsify(DEFECT_KEY, KeyEffects { effects, answers });
    }

    /// Whether a request with this key has arrived.
    pub(crate) fn has_seen(&self, key: u64) -> bool {
        self.seen.lock().contains(&key)
    }

    /// Whether the operation is refused this time, before it takes effect.
    fn refuses(&self, key: u64) -> bool {
        key.is_multiple_of(BUSY_EVERY) && self.refused.lock().insert(key)
    }

    fn has_defect(&self, defect: ServiceDefect, key: u64) -> bool {
        self.defect == Some(defect) && key == DEFECT_KEY
    }

    async fn pass(&self, gate: Gate) {
        if *self.gate.borrow() == gate {
            let _held = CountGuard::new(self, |handlers| &mut handlers.held);
            let _ = self.gate.subscribe().wait_for(|now| *now != gate).await;
        }
    }
}

/// Counts a handler until it is dropped, also when its connection breaks.
struct CountGuard {
    handlers: Arc<watch::Sender<HandlerCounts>>,
    figure: fn(&mut HandlerCounts) -> &mut u64,
}

impl CountGuard {
    fn new(service: &OrderService, figure: fn(&mut HandlerCounts) -> &mut u64) -> Self {
        service.handlers.send_modify(|handlers| *figure(handlers) += 1);
        Self { handlers: service.handlers.clone(), figure }
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.handlers.send_modify(|handlers| *(self.figure)(handlers) -= 1);
    }
}

/// One operation. Its body is the number of its key.
async fn execute(State(service): State<OrderService>, body: String) -> Response {
    let Ok(key) = body.parse() else { return StatusCode::BAD_REQUEST.into_response() };
    let _running = CountGuard::new(&service, |handlers| &mut handlers.running);
    service.seen.lock().insert(key);
    service.pass(Gate::BeforeEffect).await;
    if service.refuses(key) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let flaw = service.flaws.as_ref().and_then(|flaws| flaws.next(key));
    match flaw {
        Some(Flaw::Refused(status)) => return status.into_response(),
        Some(Flaw::ResetBeforeEffect) => flaws::reset(),
        _ => {}
    }
    if service.has_defect(ServiceDefect::Doubled, key) {
        service.effects.add_effect(key);
    }
    let effect = service.effects.add_effect(key);
    // Lets other handlers run in between, as a service with a database does.
    tokio::task::yield_now().await;
    service.pass(Gate::BeforeAnswer).await;
    match flaw {
        Some(Flaw::ResetBeforeAnswer) => flaws::reset(),
        Some(Flaw::SlowAnswer) => tokio::time::sleep(SLOW).await,
        _ => {}
    }
    if service.has_defect(ServiceDefect::Endless, key) {
        std::future::pending::<()>().await;
    }
    let answer = OrderAnswer::new(key, effect);
    service.effects.add_answer(key, answer.clone());
    let mut response = Response::builder().status(answer.status);
    for (name, value) in KEPT.into_iter().zip(&answer.fields) {
        response = response.header(name, value);
    }
    let body = answer.body.clone();
    let response = response.body(answer.body.into()).expect("a number makes a valid field");
    if flaw == Some(Flaw::CutOffAnswer) { flaws::cut_off(response, &body) } else { response }
}
