//! Ids of requests: taken from the client where they are sound, made otherwise.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;

/// The most characters of a client's id: it ends up in logs.
const CHARS_MAX: usize = 128;

/// Whether a client's id may stand in logs and headers.
pub(super) fn is_id(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=CHARS_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// An id that no other request has: a number that nobody else counts, under a secret of this process.
pub(super) fn make() -> HeaderValue {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static SECRETS: OnceLock<(RandomState, RandomState)> = OnceLock::new();
    let (first, second) = SECRETS.get_or_init(Default::default);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut text = [0; 32];
    for (half, number) in text.chunks_exact_mut(16).zip([first.hash_one(count), second.hash_one(count)]) {
        for (at, digit) in half.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (at * 4)) as usize & 15];
        }
    }
    HeaderValue::from_bytes(&text).expect("hexadecimal digits are printable")
}
