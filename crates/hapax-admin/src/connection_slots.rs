//! [`ConnectionSlots`]: the limit of connections, and the eviction of idle ones.
//!
//! A platform restarts the process when its probes fail, so other clients must not block them. A connection keeps its slot
//! while a request is processed. Of the others, the one that has been idle the longest is evicted for a new connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Slots beyond the limit, for probes only: a platform probes from a few addresses.
const PROBE_SLOTS: usize = 16;

/// The slots of all connections.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    connections_max: usize,
    occupied: Mutex<Vec<Arc<ConnectionSlot>>>,
}

/// The slot of one connection.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    state: watch::Sender<State>,
    is_probe_only: bool,
    evicted: CancellationToken,
}

#[derive(Clone, Copy, Debug)]
struct State {
    stage: Stage,
    since: Instant,
}

/// The progress of the last request of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No complete request has been received.
    Receiving,
    /// A complete request is being processed.
    Processing,
    /// The response is ready, or sent.
    Responded,
}

/// An acquired slot, released on drop.
#[derive(Debug)]
pub(super) struct OccupiedSlot {
    slots: Arc<ConnectionSlots>,
    pub(super) slot: Arc<ConnectionSlot>,
}

impl ConnectionSlots {
    pub(super) fn new(connections_max: usize) -> Arc<Self> {
        Arc::new(Self { connections_max, occupied: Mutex::default() })
    }

    /// A slot for a new connection. None if all others have a request in progress and the probe slots are in use.
    pub(super) fn acquire(self: &Arc<Self>) -> Option<OccupiedSlot> {
        let mut occupied = self.occupied.lock();
        if occupied.len() >= self.connections_max {
            let still = occupied.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.idle_since()?)));
            match still.min_by_key(|(_, since)| *since) {
                Some((at, _)) => occupied.swap_remove(at).evicted.cancel(),
                None if occupied.len() < self.connections_max + PROBE_SLOTS => {}
                None => return None,
            }
        }
        let state = State { stage: Stage::Receiving, since: Instant::now() };
        let slot = Arc::new(ConnectionSlot {
            state: watch::Sender::new(state),
            is_probe_only: occupied.len() >= self.connections_max,
            evicted: CancellationToken::new(),
        });
        occupied.push(Arc::clone(&slot));
        Some(OccupiedSlot { slots: Arc::clone(self), slot })
    }
}

impl Drop for OccupiedSlot {
    fn drop(&mut self) {
        self.slots.occupied.lock().retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

impl ConnectionSlot {
    /// Whether this connection accepts probes only.
    pub(super) fn is_probe_only(&self) -> bool {
        self.is_probe_only
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.state.send_replace(State { stage, since: Instant::now() });
    }

    pub(super) fn stage(&self) -> Stage {
        self.state.borrow().stage
    }

    /// Resolves when another connection takes the slot.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Resolves `span` after the response.
    pub(super) async fn responded_for(&self, span: Duration) {
        let mut state = self.state.subscribe();
        drop(state.wait_for(|state| state.stage == Stage::Responded).await);
        sleep(span).await;
    }

    /// Since when the connection is idle. None while a request is processed.
    fn idle_since(&self) -> Option<Instant> {
        let State { stage, since } = *self.state.borrow();
        (stage != Stage::Processing).then_some(since)
    }
}

/// The body of a request. At its end the request is being processed.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    slot: Arc<ConnectionSlot>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, slot: &Arc<ConnectionSlot>) -> Self {
        let stage = if body.is_end_stream() { Stage::Processing } else { Stage::Receiving };
        slot.enter(stage);
        Self { body, slot: Arc::clone(slot) }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() && self.slot.stage() == Stage::Receiving && self.body.is_end_stream() {
            self.slot.enter(Stage::Processing);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
