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

/// A length before what it is the length of, as `spec/protocol.md` writes it (S-01), up to 16,383.
fn length(length: usize) -> Vec<u8> {
    assert!(length < 1 << 14);
    let [low, high] = [length % 128, length / 128].map(|bits| bits as u8);
    if high == 0 { vec![low] } else { vec![low | 0x80, high] }
}
