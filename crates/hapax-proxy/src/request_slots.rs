//! Limits the running requests of one connection, including those whose stream is gone.
//!
//! An HTTP/2 client that resets a stream may open another one immediately, while a service may run the first request to
//! its end. So running requests are counted, not open streams (rapid reset).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a request waits for a slot. A reset request that a service cancels ends immediately; one that it runs to its
/// end may take long.
const WAIT: Duration = Duration::from_secs(1);

/// The slots of one connection.
#[derive(Debug)]
pub(crate) struct RequestSlots(Arc<Semaphore>);

/// In the extensions of an HTTP/2 request: counts it as running for as long as a clone exists. A service that outlives
/// its caller keeps it while the request runs and puts it in the extensions of the response.
#[derive(Clone, Debug)]
pub struct RequestSlot {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl RequestSlots {
    pub(crate) fn new(max: u32) -> Self {
        Self(Arc::new(Semaphore::new(max as usize)))
    }

    /// A slot; none when none becomes free in time. HTTP/2 itself allows no more streams than there are slots, and a
    /// request with a response has none, so only a client that resets streams waits.
    pub(crate) async fn acquire(&self) -> Option<RequestSlot> {
        let permit = match Arc::clone(&self.0).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_full) => timeout(WAIT, Arc::clone(&self.0).acquire_owned()).await.ok()?.ok()?,
        };
        Some(RequestSlot { _permit: Arc::new(permit) })
    }
}
