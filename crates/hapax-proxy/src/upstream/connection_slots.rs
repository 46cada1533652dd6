//! Limits the connections to one address that are in use at a time.
//!
//! Idle connections are reused before more are opened than the limit, so no more than that are ever open. An HTTP/2
//! connection is shared by all requests and needs no slot.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of one address.
#[derive(Debug)]
pub(super) struct ConnectionSlots(Arc<Semaphore>);

/// The slot of one connection, until it is idle or closed.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlots {
    /// This many slots; unlimited for 0.
    pub(super) fn new(connections_max: usize) -> Self {
        let slots = if connections_max == 0 { usize::MAX } else { connections_max };
        Self(Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS))))
    }

    /// A slot, if one is free.
    pub(super) fn try_acquire(&self) -> Option<ConnectionSlot> {
        self.0.clone().try_acquire_owned().ok().map(ConnectionSlot::new)
    }

    /// Whether at least this many slots are free.
    pub(super) fn has_free(&self, count: usize) -> bool {
        self.0.available_permits() >= count
    }

    /// Waits for a slot. None if there never will be one.
    pub(super) async fn acquire(&self) -> Option<ConnectionSlot> {
        self.0.clone().acquire_owned().await.ok().map(ConnectionSlot::new)
    }
}

impl ConnectionSlot {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit }
    }
}
