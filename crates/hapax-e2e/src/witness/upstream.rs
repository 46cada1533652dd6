//! The service behind the sidecar, on a thread of its own, and the gate that holds its handlers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::ledger::Ledger;

/// Where duplicates wait for the first one's answer.
pub(crate) const WAIT: &str = "/wait";
/// Where they are told at once to come back.
pub(crate) const NOW: &str = "/now";

/// Where handlers stop while the sidecar is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    /// Nowhere.
    Open,
    /// Before anything happens.
    Before,
    /// After it has happened and before it is answered.
    After,
}

/// How many handlers are at work, and how many of them the gate holds.
#[derive(Clone, Copy, Default, Debug)]
struct Busy {
    running: u64,
    held: u64,
}

/// A running service. It ends with the process.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) ledger: Arc<Ledger>,
    gate: Arc<watch::Sender<Gate>>,
    busy: Arc<watch::Sender<Busy>>,
}

impl Upstream {
    pub(crate) fn start(ledger: Ledger) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port to be had")?;
        listener.set_nonblocking(true)?;
        let upstream = Self {
            address: listener.local_addr()?,
            ledger: Arc::new(ledger),
            gate: Arc::new(watch::Sender::new(Gate::Open)),
            busy: Arc::default(),
        };
        let app = Router::new().route(WAIT, post(execute)).route(NOW, post(execute));
        let app = app.with_state(upstream.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("upstream".into()).spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("the socket does not block");
                axum::serve(listener, app).await.expect("it serves for ever");
            });
        })?;
        Ok(upstream)
    }

    /// Sets the gate.
    pub(crate) fn set(&self, gate: Gate) {
        self.gate.send_replace(gate);
    }

    /// Waits until the gate holds somebody.
    pub(crate) async fn holds(&self) {
        // The sender is in `self`: it cannot be gone.
        let _ = self.busy.subscribe().wait_for(|busy| busy.held > 0).await;
    }

    /// Waits until no handler is at work, as long as there is patience. A handler that is left is found by the audit.
    pub(crate) async fn rest(&self, patience: Duration) {
        let mut busy = self.busy.subscribe();
        let _ = tokio::time::timeout(patience, busy.wait_for(|busy| busy.running == 0)).await;
    }

    async fn pass(&self, gate: Gate) {
        if *self.gate.borrow() == gate {
            let _held = Counted::new(self, |busy| &mut busy.held);
            let _ = self.gate.subscribe().wait_for(|now| *now != gate).await;
        }
    }
}

/// One that is counted until it is dropped, also when its connection breaks.
struct Counted {
    busy: Arc<watch::Sender<Busy>>,
    figure: fn(&mut Busy) -> &mut u64,
}

impl Counted {
    fn new(upstream: &Upstream, figure: fn(&mut Busy) -> &mut u64) -> Self {
        upstream.busy.send_modify(|busy| *figure(busy) += 1);
        Self { busy: upstream.busy.clone(), figure }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.busy.send_modify(|busy| *(self.figure)(busy) -= 1);
    }
}

/// One operation. Its body is the number of its key.
async fn execute(State(upstream): State<Upstream>, body: String) -> Response {
    let Ok(key) = body.parse() else { return StatusCode::BAD_REQUEST.into_response() };
    let _running = Counted::new(&upstream, |busy| &mut busy.running);
    upstream.pass(Gate::Before).await;
    if upstream.ledger.refuses(key) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let effect = upstream.ledger.happens(key);
    // Others come between, as with a service that has a database.
    tokio::task::yield_now().await;
    upstream.pass(Gate::After).await;
    if upstream.ledger.is_endless(key) {
        std::future::pending::<()>().await;
    }
    let answer = upstream.ledger.answers(key, effect);
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.named() {
        response = response.header(name, value);
    }
    response.body(answer.body.into()).expect("a number makes a good field")
}
