//! The layer under concurrent identical requests and under clients that hang up, over real sockets: how often the
//! handler ran, and how the requests were answered.
//!
//! One thread serves, the caller's thread runs all clients. Handlers wait for clients, not for a length of time.

mod disconnects;
mod duplicates;
mod memory;
mod service;
mod waiters;

pub use self::disconnects::{Disconnects, disconnects};
pub use self::duplicates::{DUPLICATES, Duplicates, duplicates};
pub use self::memory::MeasuringAllocator;
pub use self::waiters::{WAITERS, Waiters, waiters};
