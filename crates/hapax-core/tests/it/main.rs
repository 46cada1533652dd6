//! What the core promises, file by file.
#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod clock;
mod codec;
mod derive;
mod fingerprint;
mod key;
mod pointer;
mod sample;
mod transition;
mod walk;
