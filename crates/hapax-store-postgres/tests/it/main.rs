//! The PostgreSQL store on real servers: the suite that every store passes, and what only this one can do.

// The fixtures are as much a test as those who call them.
#![allow(clippy::unwrap_used)]

mod conformance;
mod fixture;
