//! Integration tests of the core, one module per subject.
#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod clock;
mod codec;
mod derive;
mod fingerprint;
mod key;
mod key_fields;
mod pointer;
mod sample;
mod transition;
mod walk;

/// A length prefix as `spec/protocol.md` defines it (S-01).
fn length(length: usize) -> Vec<u8> {
    if length < 128 {
        return vec![length as u8];
    }
    [vec![(length % 128) as u8 | 0x80], self::length(length / 128)].concat()
}
