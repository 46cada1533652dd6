//! The DynamoDB store on DynamoDB Local: the suite that every store passes, and what only this one can do.

// The fixtures are as much a test as those who call them.
#![allow(clippy::unwrap_used)]

mod conformance;
mod fixture;
mod lapse;
mod large;
mod outage;
mod proxy;
mod round_trips;
mod table;
mod transaction;
