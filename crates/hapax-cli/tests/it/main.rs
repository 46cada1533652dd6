//! Runs the real binary.

#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod asking;
mod binary;
mod changes;
mod check;
mod config;
mod demo;
mod fixture;
#[cfg(unix)]
mod guides;
mod http_cases;
mod keys;
mod listing;
#[cfg(unix)]
mod packaging;
#[cfg(feature = "redis")]
mod redis;
mod secrets;
mod serving;
mod showing;
mod sidecar;
mod sweeping;
#[cfg(unix)]
mod tools;
mod upkeep;
mod usage;
