//! [`ConnectionSlots`]: how many connections there may be, and which of them gives way to a new one.
//!
//! Probes decide whether the process lives, so nothing that others do may keep them waiting. A connection whose request
//! is being worked on keeps its slot. Every other one, the one that has stood still for longest first, gives way.

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

/// Slots beyond the cap, for probes alone: occupied where every other connection is being worked for. A platform probes
/// from a few addresses.
const PROBE_SLOTS: usize = 16;

/// All slots.
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

/// How far the last request of a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// None has come, or not all of one.
    Receiving,
    /// It is whole and is being worked on.
    Processing,
    /// Its answer is there, and perhaps taken.
    Responded,
}

/// A slot that was occupied. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct OccupiedSlot {
    slots: Arc<ConnectionSlots>,
    pub(super) slot: Arc<ConnectionSlot>,
}

impl ConnectionSlots {
    pub(super) fn new(connections_max: usize) -> Arc<Self> {
        Arc::new(Self { connections_max, occupied: Mutex::default() })
    }

    /// A slot for a new connection. None where every other one is being worked for and the probes have theirs.
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
    /// Whether only probes are answered on this connection.
    pub(super) fn is_probe_only(&self) -> bool {
        self.is_probe_only
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.state.send_replace(State { stage, since: Instant::now() });
    }

    pub(super) fn stage(&self) -> Stage {
        self.state.borrow().stage
    }

    /// Resolves once another connection has this slot.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Resolves once the answer has been there for so long.
    pub(super) async fn responded_for(&self, span: Duration) {
        let mut state = self.state.subscribe();
        drop(state.wait_for(|state| state.stage == Stage::Responded).await);
        sleep(span).await;
    }

    /// Since when nothing is worked on. None while something is.
    fn idle_since(&self) -> Option<Instant> {
        let State { stage, since } = *self.state.borrow();
        (stage != Stage::Processing).then_some(since)
    }
}

/// The body of a request. With its end, work on the request begins.
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
