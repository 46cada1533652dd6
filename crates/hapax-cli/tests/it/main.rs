//! Runs the real binary.

#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod admin_tls;
mod asking;
mod binary;
mod changes;
mod check;
mod config;
mod demo;
mod fixture;
#[cfg(target_os = "linux")]
mod foreign;
#[cfg(unix)]
mod guides;
mod http_cases;
mod keys;
mod listing;
#[cfg(unix)]
mod packaging;
#[cfg(feature = "redis")]
mod postgres;
mod redis;
mod secrets;
mod serving;
mod settling;
mod showing;
mod sidecar;
mod sweeping;
#[cfg(unix)]
mod tools;
#[cfg(unix)]
mod tracing;
mod upkeep;
mod usage;
