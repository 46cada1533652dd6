//! The PostgreSQL store on real servers: the suite that every store passes, and what only this one can do.

// The fixtures are as much a test as those who call them.
#![allow(clippy::unwrap_used)]

mod coalescing;
mod conformance;
mod counting;
mod fixture;
mod handlers;
mod joined;
mod lost_answers;
mod migrations;
mod once_in;
mod once_in_isolation;
mod once_in_pooled;
mod once_in_sqlx;
mod outage;
mod promise;
mod round_trips;
mod shop;
mod sweeping;
#[cfg(feature = "tls")]
mod tls;
mod transactions;
mod wake;
