//! [`Places`]: how many connections there may be, and which of them gives way to a new one.
//!
//! Probes decide whether the process lives, so nothing that others do may keep them waiting. A connection whose request
//! is being worked on keeps its place. Every other one, the one that has stood still for longest first, gives way.

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

/// Places beyond the cap, for probes alone: taken where every other connection is being worked for. A platform probes
/// from a few addresses.
const PROBES_MAX: usize = 16;

/// All places.
#[derive(Debug)]
pub(super) struct Places {
    places_max: usize,
    taken: Mutex<Vec<Arc<Place>>>,
}

/// The place of one connection.
#[derive(Debug)]
pub(super) struct Place {
    state: watch::Sender<State>,
    is_for_probes: bool,
    gives_way: CancellationToken,
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
    Asking,
    /// It is whole and is being worked on.
    Working,
    /// Its answer is there, and perhaps taken.
    Answered,
}

/// A place that was taken. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    places: Arc<Places>,
    pub(super) place: Arc<Place>,
}

impl Places {
    pub(super) fn new(places_max: usize) -> Arc<Self> {
        Arc::new(Self { places_max, taken: Mutex::default() })
    }

    /// A place for a new connection. None where every other one is being worked for and the probes have theirs.
    pub(super) fn take(self: &Arc<Self>) -> Option<Taken> {
        let mut taken = self.taken.lock();
        if taken.len() >= self.places_max {
            let still = taken.iter().enumerate().filter_map(|(at, place)| Some((at, place.still_since()?)));
            match still.min_by_key(|(_, since)| *since) {
                Some((at, _)) => taken.swap_remove(at).gives_way.cancel(),
                None if taken.len() < self.places_max + PROBES_MAX => {}
                None => return None,
            }
        }
        let state = State { stage: Stage::Asking, since: Instant::now() };
        let place = Arc::new(Place {
            state: watch::Sender::new(state),
            is_for_probes: taken.len() >= self.places_max,
            gives_way: CancellationToken::new(),
        });
        taken.push(Arc::clone(&place));
        Some(Taken { places: Arc::clone(self), place })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.places.taken.lock().retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

impl Place {
    /// Whether only probes are answered on this connection.
    pub(super) fn is_for_probes(&self) -> bool {
        self.is_for_probes
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.state.send_replace(State { stage, since: Instant::now() });
    }

    pub(super) fn stage(&self) -> Stage {
        self.state.borrow().stage
    }

    /// Resolves once another connection has this place.
    pub(super) async fn gives_way(&self) {
        self.gives_way.cancelled().await;
    }

    /// Resolves once the answer has been there for so long.
    pub(super) async fn answered_for(&self, span: Duration) {
        let mut state = self.state.subscribe();
        drop(state.wait_for(|state| state.stage == Stage::Answered).await);
        sleep(span).await;
    }

    /// Since when nothing is worked on. None while something is.
    fn still_since(&self) -> Option<Instant> {
        let State { stage, since } = *self.state.borrow();
        (stage != Stage::Working).then_some(since)
    }
}

/// The body of a request. With its end, work on the request begins.
#[derive(Debug)]
pub(super) struct Asked {
    body: Incoming,
    place: Arc<Place>,
}

impl Asked {
    pub(super) fn new(body: Incoming, place: &Arc<Place>) -> Self {
        let stage = if body.is_end_stream() { Stage::Working } else { Stage::Asking };
        place.enter(stage);
        Self { body, place: Arc::clone(place) }
    }
}

impl Body for Asked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() && self.place.stage() == Stage::Asking && self.body.is_end_stream() {
            self.place.enter(Stage::Working);
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
