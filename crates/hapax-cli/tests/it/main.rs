//! Runs the real binary.

#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod binary;
mod changes;
mod check;
mod config;
mod fixture;
mod keys;
mod listing;
mod secrets;
mod showing;
mod sweeping;
mod usage;
