//! A service behind the layer, on a free port: handlers that report when they run and wait until they may continue, and
//! a store that counts every call.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use hapax::core::{Query, Reason, State as RecordState, Status, Store};
use hapax::http::{HttpPolicy, IdempotencyLayer};
use hapax::{Builder, Hapax, Keeper, MemoryStore};
use hapax_testkit::{Faulty, Op, Point};
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;

use super::wire::{Ask, Http1, WireResponse, in_time};

/// The events so far.
#[derive(Clone, Default, Debug)]
pub(crate) struct Events {
    /// Handlers that have begun.
    pub(crate) runs: u32,
    /// Requests that reached the layer.
    pub(crate) arrived: u32,
    /// Requests that were answered or cancelled by their connection.
    pub(crate) left: u32,
    /// Requests that were cancelled by their connection before the response.
    pub(crate) gone: u32,
    called: BTreeMap<Op, u64>,
    applied: BTreeMap<Op, u64>,
}

impl Events {
    /// Store calls that were made.
    pub(crate) fn called(&self, op: Op) -> u64 {
        self.called.get(&op).copied().unwrap_or(0)
    }

    /// Store calls that the store has carried out.
    pub(crate) fn applied(&self, op: Op) -> u64 {
        self.applied.get(&op).copied().unwrap_or(0)
    }
}

/// Synchronises handlers and tests.
#[derive(Debug)]
pub(crate) struct Stage {
    seen: watch::Sender<Events>,
    go: Semaphore,
}

impl Stage {
    fn new() -> Arc<Self> {
        Arc::new(Self { seen: watch::Sender::new(Events::default()), go: Semaphore::new(0) })
    }

    /// Reports that a handler begins; returns the number of the run.
    pub(crate) fn run(&self) -> u32 {
        self.seen.send_modify(|seen| seen.runs += 1);
        self.runs()
    }

    /// Waits in a handler until [`go`](Self::go).
    pub(crate) async fn rest(&self) {
        self.go.acquire().await.unwrap().forget();
    }

    /// Lets one waiting handler continue.
    pub(crate) fn go(&self) {
        self.go.add_permits(1);
    }

    pub(crate) fn runs(&self) -> u32 {
        self.seen.borrow().runs
    }

    pub(crate) fn seen(&self) -> Events {
        self.seen.borrow().clone()
    }

    /// Waits for a state of the events.
    pub(crate) async fn until(&self, reached: impl FnMut(&Events) -> bool) {
        in_time(self.seen.subscribe().wait_for(reached)).await.unwrap();
    }
}

/// Reports when a request is answered or cancelled.
struct LeaveGuard {
    stage: Arc<Stage>,
    is_answered: bool,
}

impl Drop for LeaveGuard {
    fn drop(&mut self) {
        self.stage.seen.send_modify(|seen| {
            seen.left += 1;
            seen.gone += u32::from(!self.is_answered);
        });
    }
}

/// A middleware outside of the layer, where the connection is.
async fn note_leaving(State(stage): State<Arc<Stage>>, request: Request, next: Next) -> Response {
    stage.seen.send_modify(|seen| seen.arrived += 1);
    let mut leaving = LeaveGuard { stage, is_answered: false };
    let response = next.run(request).await;
    leaving.is_answered = true;
    response
}

/// The set-up of a service; everything has a default.
pub(crate) struct Setup {
    pub(crate) policy: HttpPolicy,
    pub(crate) hapax: fn(Builder) -> Builder,
    pub(crate) layer: fn(IdempotencyLayer) -> IdempotencyLayer,
    /// Further routes.
    pub(crate) routes: fn() -> Router<Arc<Stage>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            policy: HttpPolicy::default(),
            hapax: |builder| builder,
            layer: |layer| layer,
            routes: Router::new,
        }
    }
}

/// A running service.
pub(crate) struct Service {
    pub(crate) hapax: Hapax,
    pub(crate) faulty: Faulty,
    pub(crate) stage: Arc<Stage>,
    pub(crate) address: SocketAddr,
    pub(crate) router: Router,
    store: Arc<dyn Store>,
    stop: Arc<Notify>,
    server: JoinHandle<()>,
}

impl Service {
    /// The default routes with this policy.
    pub(crate) async fn new(policy: HttpPolicy) -> Self {
        Self::start(Setup { policy, ..Setup::default() }).await
    }

    pub(crate) async fn start(setup: Setup) -> Self {
        Self::start_on(Arc::new(MemoryStore::new()), setup).await
    }

    /// The same on this store.
    pub(crate) async fn start_on(store: Arc<dyn Store>, setup: Setup) -> Self {
        Self::over(store, Stage::new(), setup).await
    }

    /// The next process on the same store, with the default routes and the same stage.
    pub(crate) async fn successor(&self) -> Self {
        Self::over(self.store.clone(), self.stage.clone(), Setup::default()).await
    }

    async fn over(store: Arc<dyn Store>, stage: Arc<Stage>, setup: Setup) -> Self {
        let faulty = Faulty::new(store.clone());
        faulty.observe({
            let stage = stage.clone();
            move |step| {
                stage.seen.send_modify(|seen| {
                    let calls = match step.point {
                        Point::Before => &mut seen.called,
                        Point::After => &mut seen.applied,
                    };
                    *calls.entry(step.op).or_default() += 1;
                });
            }
        });
        let builder = Hapax::builder(faulty.clone()).keeper(Keeper::SharedRuntime).sweep(None).cache(0);
        let hapax = (setup.hapax)(builder).build();
        let layer = (setup.layer)(IdempotencyLayer::new(&hapax).policy(setup.policy));
        let router = (setup.routes)()
            .route("/orders", any(order))
            .route("/slow", any(slow))
            .route("/panics", any(panics))
            .layer(layer)
            .layer(from_fn_with_state(stage.clone(), note_leaving))
            .with_state(stage.clone());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let served = axum::serve(listener, router.clone());
        let served = served.with_graceful_shutdown(async move { stopped.notified().await });
        let server = tokio::spawn(async move { served.await.unwrap() });
        Self { hapax, faulty, stage, address, router, store, stop, server }
    }

    /// Accepts no more connections and lets open ones end.
    pub(crate) fn shut_down(&self) {
        self.stop.notify_one();
    }

    /// Waits until the server has ended.
    pub(crate) async fn has_ended(&mut self) {
        in_time(&mut self.server).await.unwrap();
    }

    /// Sends a request on a new connection.
    pub(crate) async fn ask(&self, ask: &Ask) -> WireResponse {
        Http1::open(self.address).await.ask(ask).await
    }

    /// Sends a request on a new connection and waits until its handler runs.
    pub(crate) async fn begin(&self, ask: &Ask) -> Http1 {
        let runs = self.stage.runs();
        let mut client = Http1::open(self.address).await;
        client.send(&ask.wire()).await;
        self.stage.until(|seen| seen.runs > runs).await;
        client
    }

    /// The states of all records, bypassing injected store failures.
    pub(crate) async fn states(&self) -> Vec<RecordState> {
        let page = self.store.list(&Query::default()).await.unwrap();
        page.records.iter().map(|record| record.state_at(page.now)).collect()
    }

    /// The reasons of the uncertain records.
    pub(crate) async fn reasons(&self) -> Vec<Reason> {
        let page = self.store.list(&Query::default()).await.unwrap();
        let reason = |status: &Status| match status {
            Status::Uncertain { reason } => Some(*reason),
            _ => None,
        };
        page.records.iter().filter_map(|record| reason(&record.status)).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Responds at once.
pub(crate) async fn order(State(stage): State<Arc<Stage>>) -> (StatusCode, String) {
    (StatusCode::CREATED, format!("order-{}", stage.run()))
}

/// Responds after `go`.
async fn slow(State(stage): State<Arc<Stage>>, _body: Bytes) -> (StatusCode, String) {
    let run = stage.run();
    stage.rest().await;
    (StatusCode::CREATED, format!("order-{run}"))
}

pub(crate) async fn panics(State(stage): State<Arc<Stage>>) -> StatusCode {
    stage.run();
    tokio::task::yield_now().await;
    panic!("a planned panic of a handler")
}

/// A body of these parts; the handler waits before every part but the first.
pub(crate) fn in_parts(stage: Arc<Stage>, parts: Vec<Result<&'static str, std::io::Error>>) -> Body {
    let parts = parts.into_iter().enumerate();
    Body::from_stream(futures_util::stream::unfold((stage, parts), |(stage, mut parts)| async move {
        let (index, part) = parts.next()?;
        if index > 0 {
            stage.rest().await;
        }
        Some((part.map(str::as_bytes).map(Bytes::from_static), (stage, parts)))
    }))
}

/// Far longer than any wait in a test: a waiter that takes this long was not woken.
pub(crate) const LONG: Duration = Duration::from_secs(60);
