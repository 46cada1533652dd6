//! The file store: the suite that every store passes, and what only this one can do.

// The fixtures are as much a test as those who call them.
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
