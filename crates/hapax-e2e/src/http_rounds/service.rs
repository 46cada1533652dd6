//! A service behind the layer, on a thread of its own, and what it has seen.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::post;
use hapax::http::{HttpPolicy, IdempotencyLayer};
use hapax::{Hapax, MemoryStore};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// Where duplicates wait for the first one's answer.
pub(super) const WAIT: &str = "/wait";
/// Where they are told at once.
pub(super) const NOW: &str = "/now";

/// Longer than anything takes here. Past it, something hangs.
const HANGS: Duration = Duration::from_secs(60);

/// What happened so far.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Seen {
    /// Requests that reached the layer.
    pub(super) arrived: u64,
    /// Handlers that began.
    pub(super) executions: u64,
    /// Requests whose connection gave them up before there was an answer.
    pub(super) gone: u64,
}

/// A running service. It ends with the process.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    seen: watch::Sender<Seen>,
    pace: Pace,
    go: Semaphore,
}

/// What a handler waits for before it answers.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// Until so many requests have arrived for every execution.
    Arrivals(u64),
    /// Until it is let go.
    Permits,
}

impl Service {
    /// A service whose answers have `bytes` bytes and take as long as `pace` says.
    pub(super) async fn start(pace: Pace, bytes: usize) -> Result<Self> {
        let shared =
            Arc::new(Shared { seen: watch::Sender::new(Seen::default()), pace, go: Semaphore::new(0) });
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port to be had")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let service = Self { address, shared: shared.clone() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("service".into()).spawn(move || {
            runtime.block_on(async {
                let hapax = Hapax::builder(Arc::new(MemoryStore::new())).sweep(None).build();

                let layer = IdempotencyLayer::new(&hapax).route(WAIT, HttpPolicy::default().wait(HANGS));
                let handler = move |shared: State<Arc<Shared>>, order: Bytes| execute(shared, order, bytes);
                let app = Router::new()
                    .route(WAIT, post(handler))
                    .route(NOW, post(handler))
                    .layer(layer)
                    .layer(from_fn_with_state(shared.clone(), note))
                    .with_state(shared);
                let listener = TcpListener::from_std(listener).expect("the socket does not block");
                axum::serve(listener, app).await.expect("it serves for ever");
            });
        })?;
        Ok(service)
    }

    pub(super) fn seen(&self) -> Seen {
        *self.shared.seen.borrow()
    }

    /// Waits until that has happened.
    pub(super) async fn until(&self, reached: impl FnMut(&Seen) -> bool) -> Result<()> {
        let mut seen = self.shared.seen.subscribe();
        let waited = tokio::time::timeout(HANGS, seen.wait_for(reached)).await;
        waited.with_context(|| format!("nothing happens any more: {:?}", self.seen()))??;
        Ok(())
    }

    /// Lets one handler go on.
    pub(super) fn go(&self) {
        self.shared.go.add_permits(1);
    }
}

/// One order, executed: its text, which execution it was, and filling.
async fn execute(State(shared): State<Arc<Shared>>, order: Bytes, bytes: usize) -> (StatusCode, Vec<u8>) {
    let mut execution = 0;
    shared.seen.send_modify(|seen| {
        seen.executions += 1;
        execution = seen.executions;
    });
    match shared.pace {
        Pace::Arrivals(each) => {
            // The sender is in `shared`: it cannot be gone.
            let _ = shared.seen.subscribe().wait_for(|seen| seen.arrived >= execution * each).await;
        }
        Pace::Permits => {
            if let Ok(permit) = shared.go.acquire().await {
                permit.forget();
            }
        }
    }
    let mut answer = [order.as_ref(), format!(" execution {execution} ").as_bytes()].concat();
    answer.resize(bytes.max(answer.len()), b'.');
    (StatusCode::CREATED, answer)
}

/// Notes a request that its connection gives up.
struct Leaving {
    shared: Arc<Shared>,
    is_answered: bool,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shared.seen.send_modify(|seen| seen.gone += 1);
        }
    }
}

/// Stands outside of the layer, where the connection does.
async fn note(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    shared.seen.send_modify(|seen| seen.arrived += 1);
    let mut leaving = Leaving { shared, is_answered: false };
    let response = next.run(request).await;
    leaving.is_answered = true;
    response
}
