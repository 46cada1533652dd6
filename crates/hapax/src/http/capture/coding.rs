//! Decoding a stored body that the retry does not accept as it is stored.
//!
//! The stored variant is replayed unchanged, independent of what the retry accepts, with one exception: a coding that
//! the retry's `Accept-Encoding` excludes is decoded if possible (feature `decode`).

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, VARY};
use http::{HeaderMap, HeaderValue};

use crate::http::canonical::header::first;

/// The body for this retry. The header fields that describe its bytes are updated.
pub(super) fn acceptable_body(retry: &HeaderMap, headers: &mut HeaderMap, body: Bytes) -> Bytes {
    if body.is_empty() || first(headers, &CONTENT_ENCODING).is_none() {
        return body;
    }
    let codings = codings(headers);
    if codings.iter().all(|coding| acceptable(retry, coding)) {
        return body;
    }
    let Some(plain) = undone(&codings, &body) else { return body };
    describe_plain(headers);
    plain
}

/// The codings of a body in the order they were applied, in lower case.
fn codings(headers: &HeaderMap) -> Vec<Cow<'static, [u8]>> {
    let lines = headers.get_all(CONTENT_ENCODING).iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    names.map(|name| Cow::Owned(bare(name.trim_ascii()).to_ascii_lowercase())).collect()
}

/// Whether `Accept-Encoding` accepts this coding (RFC 9110, section 12.5.3). Without the field every coding is
/// accepted.
pub(super) fn acceptable(headers: &HeaderMap, coding: &[u8]) -> bool {
    let mut lines = headers.get_all(ACCEPT_ENCODING).iter().peekable();
    if lines.peek().is_none() {
        return true;
    }
    let mut by_star = false;
    for item in lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')) {
        let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let welcome = !parts.any(is_zero_weight);
        if bare(name).eq_ignore_ascii_case(bare(coding)) {
            return welcome;
        }
        by_star |= name == b"*" && welcome;
    }
    by_star
}

/// `x-gzip` is an older name of `gzip`.
fn bare(coding: &[u8]) -> &[u8] {
    coding.strip_prefix(b"x-").unwrap_or(coding)
}

/// `q=0`, `q=0.0` and so on.
fn is_zero_weight(parameter: &[u8]) -> bool {
    let [b'q' | b'Q', b'=', weight @ ..] = parameter else { return false };
    weight.first() == Some(&b'0') && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

#[cfg(feature = "decode")]
fn undone(codings: &[Cow<'_, [u8]>], body: &[u8]) -> Option<Bytes> {
    use crate::http::decode::{DecodeLimits, decoded};

    // The body is from a trusted origin, but every such retry holds it decoded in memory.
    const LIMITS: DecodeLimits = DecodeLimits { bytes_max: 16 * 1024 * 1024, ratio_max: 1000 };
    decoded(codings, body, &LIMITS).ok().map(|plain| plain.into_owned().into())
}

#[cfg(not(feature = "decode"))]
fn undone(_codings: &[Cow<'_, [u8]>], _body: &[u8]) -> Option<Bytes> {
    None
}

/// The decoded bytes differ: digests are removed, a strong ETag becomes weak, and `Vary` informs caches.
fn describe_plain(headers: &mut HeaderMap) {
    headers.remove(CONTENT_ENCODING);
    for digest in ["content-digest", "repr-digest", "content-md5", "digest"] {
        headers.remove(digest);
    }
    if let Some(etag) = headers.get(ETAG).filter(|etag| !etag.as_bytes().starts_with(b"W/")) {
        match HeaderValue::from_bytes(&[b"W/", etag.as_bytes()].concat()) {
            Ok(weak) => headers.insert(ETAG, weak),
            Err(_) => headers.remove(ETAG),
        };
    }
    let _full = headers.try_append(VARY, HeaderValue::from_static("accept-encoding"));
}
