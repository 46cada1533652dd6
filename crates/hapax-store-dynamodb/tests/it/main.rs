//! The DynamoDB store on DynamoDB Local: the conformance suite, and tests for this store only.

// Fixtures may unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod attempt_writes;
mod conformance;
mod effects;
mod fixture;
mod lapse;
mod large;
mod outage;
mod proxy;
mod round_trips;
mod table;
mod transaction;
