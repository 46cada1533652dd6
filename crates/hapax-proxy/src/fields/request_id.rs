//! Ids of requests: the client's where it is valid, generated otherwise.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;

/// The most characters of a client's id, which is logged.
const CHARS_MAX: usize = 128;

/// Whether a client's id is fit for logs and header fields.
pub(super) fn is_valid(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=CHARS_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// A unique id: a counter of this process, hashed with its random keys.
pub(super) fn generate() -> HeaderValue {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static KEYS: OnceLock<(RandomState, RandomState)> = OnceLock::new();
    let (first, second) = KEYS.get_or_init(Default::default);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut text = [0; 32];
    for (half, number) in text.chunks_exact_mut(16).zip([first.hash_one(count), second.hash_one(count)]) {
        for (at, digit) in half.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (at * 4)) as usize & 15];
        }
    }
    HeaderValue::from_bytes(&text).expect("hexadecimal digits are printable")
}
