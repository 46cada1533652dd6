//! The engine and `once()` on the memory store, in simulated time if time matters; the layer behind sockets.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its report")]

mod cache;
mod canary;
mod checklist;
mod drain;
mod event_cases;
mod function;
mod http;
mod http_cases;
mod http_surfaces;
mod lambda_events;
mod lease;
mod memory;
mod observe;
mod reconcile;
mod recording;
mod service;
mod wait;
mod watched;
mod world;
