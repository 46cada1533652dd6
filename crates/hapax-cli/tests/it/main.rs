//! Tests that run the binary.

#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod admin_tls;
mod binary;
mod callouts;
#[cfg(unix)]
mod certificates;
mod changes;
mod check;
#[cfg(feature = "client")]
mod client;
mod config;
mod demo;
#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(unix)]
mod express;
mod fixture;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(unix)]
mod guides;
mod http_cases;
mod keys;
mod listing;
#[cfg(unix)]
mod logging;
#[cfg(unix)]
mod packaging;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod refusals;
#[cfg(unix)]
mod sdks;
mod secrets;
mod serving;
mod settling;
#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
mod shared_store;
mod showing;
#[cfg(unix)]
mod shutdown;
mod sidecar;
#[cfg(target_os = "linux")]
mod smuggling;
mod sweeping;
#[cfg(target_os = "linux")]
mod third_party;
#[cfg(all(feature = "postgres", feature = "redis"))]
mod tiers;
#[cfg(unix)]
mod tools;
#[cfg(unix)]
mod tracing;
mod upkeep;
mod usage;
