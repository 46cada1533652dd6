//! How many connections to one address are in use at a time.
//!
//! Unused connections are taken up before more are opened than may be in use, so no more than that many are ever open. A connection of
//! HTTP/2 is shared by all requests and needs no place.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places at one address.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

/// The place of one connection, until it is unused or closed.
#[derive(Debug)]
pub(in crate::proxy) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Room {
    /// Room for so many; for any number where that is 0.
    pub(super) fn new(connections_max: usize) -> Self {
        let places = if connections_max == 0 { usize::MAX } else { connections_max };
        Self(Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))))
    }

    /// A place, if there is one now.
    pub(super) fn place(&self) -> Option<Place> {
        self.0.clone().try_acquire_owned().ok().map(Place::new)
    }

    /// Whether so many more could be in use.
    pub(super) fn is_left_for(&self, more: usize) -> bool {
        self.0.available_permits() >= more
    }

    /// A place, as soon as there is one. None if there never will be.
    pub(super) async fn next_place(&self) -> Option<Place> {
        self.0.clone().acquire_owned().await.ok().map(Place::new)
    }
}

impl Place {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit }
    }
}
