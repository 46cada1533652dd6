//! The tower layer: any HTTP service made safe to retry.
#![allow(dead_code, reason = "parts arrive before what joins them")]

mod canonical;
mod capture;
mod classify;
#[cfg(feature = "decode")]
mod decode;
mod digest;
mod fingerprint;
mod grpc;
mod key_source;
mod limits;
mod path;
mod problem;
mod scope;
#[cfg(feature = "webhook")]
mod webhook;

pub use classify::Outcome;
pub use problem::{Code, TYPE_BASE};
