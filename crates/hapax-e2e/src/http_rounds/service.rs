//! [`CountingService`]: a service behind the layer, and counts of its requests and executions.

use std::net::SocketAddr;
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
use tokio::sync::{Semaphore, watch};

use crate::rig::serve::{listener, serve_on_thread};
pub(super) use crate::rig::service::{NOW, WAIT};

/// Longer than any step takes in a run that works.
const STEP_MAX: Duration = Duration::from_secs(60);

/// Counts of requests and executions.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RequestCounts {
    /// Requests that reached the layer.
    pub(super) arrived: u64,
    /// Handlers that began.
    pub(super) executions: u64,
    /// Requests that were dropped with their connection before there was a response.
    pub(super) dropped: u64,
}

/// A running service. It ends with the process.
#[derive(Clone)]
pub(super) struct CountingService {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    counts: watch::Sender<RequestCounts>,
    pace: Pace,
    permits: Semaphore,
}

/// What a handler waits for before it returns.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// So many arrived requests for every execution.
    Arrivals(u64),
    /// A permit.
    Permits,
}

impl CountingService {
    /// A service whose responses have `bytes` bytes at least.
    pub(super) fn start(pace: Pace, bytes: usize) -> Result<Self> {
        let counts = watch::Sender::new(RequestCounts::default());
        let shared = Arc::new(Shared { counts, pace, permits: Semaphore::new(0) });
        let listener = listener()?;
        let service = Self { address: listener.local_addr()?, shared: shared.clone() };
        serve_on_thread("service", listener, move || {
            let hapax = Hapax::builder(MemoryStore::new()).sweep(None).build();
            let layer = IdempotencyLayer::new(&hapax).route(WAIT, HttpPolicy::default().wait(STEP_MAX));
            let handler = move |shared: State<Arc<Shared>>, order: Bytes| execute(shared, order, bytes);
            Router::new()
                .route(WAIT, post(handler))
                .route(NOW, post(handler))
                .layer(layer)
                .layer(from_fn_with_state(shared.clone(), count_request))
                .with_state(shared)
        })?;
        Ok(service)
    }

    pub(super) fn counts(&self) -> RequestCounts {
        *self.shared.counts.borrow()
    }

    /// Waits until the counts have reached that.
    pub(super) async fn until(&self, reached: impl FnMut(&RequestCounts) -> bool) -> Result<()> {
        let mut counts = self.shared.counts.subscribe();
        let waited = tokio::time::timeout(STEP_MAX, counts.wait_for(reached)).await;
        waited.with_context(|| format!("no progress: {:?}", self.counts()))??;
        Ok(())
    }

    /// Lets one handler return.
    pub(super) fn permit(&self) {
        self.shared.permits.add_permits(1);
    }
}

/// One execution. It returns the text of the order, the number of the execution, and padding.
async fn execute(State(shared): State<Arc<Shared>>, order: Bytes, bytes: usize) -> (StatusCode, Vec<u8>) {
    let mut execution = 0;
    shared.counts.send_modify(|counts| {
        counts.executions += 1;
        execution = counts.executions;
    });
    match shared.pace {
        Pace::Arrivals(each) => {
            // The sender is in `shared`, so it is not dropped.
            let _ = shared.counts.subscribe().wait_for(|counts| counts.arrived >= execution * each).await;
        }
        Pace::Permits => {
            if let Ok(permit) = shared.permits.acquire().await {
                permit.forget();
            }
        }
    }
    let mut answer = [order.as_ref(), format!(" execution {execution} ").as_bytes()].concat();
    answer.resize(bytes.max(answer.len()), b'.');
    (StatusCode::CREATED, answer)
}

/// Counts a request that is dropped with its connection.
struct DropCounter {
    shared: Arc<Shared>,
    is_answered: bool,
}

impl Drop for DropCounter {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shared.counts.send_modify(|counts| counts.dropped += 1);
        }
    }
}

/// Runs outside of the layer, next to the connection.
async fn count_request(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    shared.counts.send_modify(|counts| counts.arrived += 1);
    let mut drop_counter = DropCounter { shared, is_answered: false };
    let response = next.run(request).await;
    drop_counter.is_answered = true;
    response
}
