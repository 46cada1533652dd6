//! The Redis store on real servers: the suite that every store passes, and what only this one can do.

// The fixtures are as much a test as those who call them.
#![allow(clippy::unwrap_used)]

mod amnesia;
mod cluster;
mod conformance;
mod fixture;
mod limits;
mod lost_answers;
mod outage;
mod promise;
mod replicas;
mod round_trips;
mod sentinel;
mod tiers;
#[cfg(feature = "tls")]
mod tls;
mod wake;
