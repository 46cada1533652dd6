//! Requests of one connection that run, also those whose stream is gone.
//!
//! A client of HTTP/2 that resets a stream may open another one at once, and what it had claimed runs to its end. So a
//! connection counts what runs and not what is open.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a request waits for a place. What was reset before it was claimed ends at once, and what was claimed may run
/// for long.
const WAIT: Duration = Duration::from_secs(1);

/// The places of a connection for requests that run.
#[derive(Debug)]
pub(super) struct Runs(Arc<Semaphore>);

/// A request that runs, for as long as a clone of this is there. It goes with the request to where it is executed and
/// comes back with the answer.
#[derive(Clone, Debug)]
pub(super) struct Running {
    _place: Arc<OwnedSemaphorePermit>,
}

impl Runs {
    pub(super) fn new(max: u32) -> Self {
        Self(Arc::new(Semaphore::new(max as usize)))
    }

    /// A place, once there is one; none when there is none for too long. HTTP/2 itself allows no more streams than there are
    /// places, and a request that was answered does not run any more: only a client that resets streams has to wait.
    pub(super) async fn begin(&self) -> Option<Running> {
        let place = match Arc::clone(&self.0).try_acquire_owned() {
            Ok(place) => place,
            Err(_full) => timeout(WAIT, Arc::clone(&self.0).acquire_owned()).await.ok()?.ok()?,
        };
        Some(Running { _place: Arc::new(place) })
    }
}
