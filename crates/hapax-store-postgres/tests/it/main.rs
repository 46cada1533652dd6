//! The PostgreSQL store on real servers: the conformance suite, and tests for this store only.

// Fixtures may unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod coalescing;
mod conformance;
mod counting;
mod fixture;
mod handler_tx;
mod handlers;
#[cfg(feature = "events")]
mod in_tx;
mod lost_answers;
mod migrations;
mod notifications;
mod once_in;
mod once_in_isolation;
mod once_in_pooled;
mod once_in_sqlx;
mod outage;
mod promise;
mod round_trips;
#[cfg(feature = "events")]
mod shipping;
mod shop;
mod sweeping;
#[cfg(feature = "events")]
mod tiers;
#[cfg(feature = "tls")]
mod tls;
mod transactions;
