//! The Redis store on real servers: the conformance suite, and tests for this store only.

// Fixtures may unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod amnesia;
mod cluster;
mod conformance;
mod fixture;
mod limits;
mod lost_answers;
mod notifications;
mod outage;
mod promise;
mod replicas;
mod round_trips;
mod sentinel;
mod tiers;
#[cfg(feature = "tls")]
mod tls;
