//! The file store: the suite of all stores, and tests of this one.

// Fixtures are test code too.
#![allow(clippy::unwrap_used)]

mod batch;
mod conformance;
mod copies;
mod crash;
mod damage;
mod fixture;
mod limits;
mod list;
mod lookup;
mod open;
mod ownership;
mod reopen;
mod stop;
mod sweep;
