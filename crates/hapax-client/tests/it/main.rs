//! The client against a server on the loopback interface that answers by a script.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the report")]

mod bodies;
mod chain;
mod errors;
mod journal;
mod keys;
mod layer;
mod lifetime;
mod limits;
mod middleware;
mod observed;
mod retries;
mod server;
