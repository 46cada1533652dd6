//! The layer under many identical requests at a time and under clients that hang up, over real sockets: how often
//! the handler ran, and what everybody was told.
//!
//! One thread serves, the caller's thread is all the clients. Nothing waits for a length of time: the handler is
//! slow because it waits for the clients.

pub(crate) mod client;
mod disconnects;
mod duplicates;
mod service;
mod waiters;
mod weight;

pub use self::disconnects::{Disconnects, disconnects};
pub use self::duplicates::{DUPLICATES, Duplicates, duplicates};
pub use self::waiters::{WAITERS, Waiters, waiters};
pub use self::weight::Weighing;
