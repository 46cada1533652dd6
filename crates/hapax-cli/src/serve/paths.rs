//! [`AmbiguousPathGuard`]: refuses protected requests whose path an origin could interpret as another one.
//!
//! The policy and the record of a request depend on its unnormalised path. Some origins normalise `//`, `/../`, `;…`, a
//! backslash or an encoded slash. With another spelling, a request could bypass a route that requires a key, or run again
//! under the same key.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::TryFutureExt as _;
use futures_util::future::{Either, MapOk, Ready, ready};
use hapax::http::IdempotencyLayer;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use crate::problem;

/// Refuses ambiguous requests and passes on all others.
#[derive(Clone, Debug)]
pub(super) struct AmbiguousPathGuard<S> {
    inner: S,
    /// The layer inside `inner`.
    layer: IdempotencyLayer,
}

impl<S> AmbiguousPathGuard<S> {
    pub(super) fn new(inner: S, layer: IdempotencyLayer) -> Self {
        Self { inner, layer }
    }

    /// Whether the request is protected under one of several readings of its path.
    fn is_refused<B>(&self, request: &Request<B>) -> bool {
        let Some(readings) = readings(request.uri().path()) else { return false };
        readings.iter().any(|path| self.layer.protects(request.method(), path, request.headers()))
    }
}

/// The readings of an ambiguous path; none if there is only one. A slash at the end is optional, so it alone makes no path
/// ambiguous.
fn readings(path: &str) -> Option<[String; 3]> {
    let is_suspect = path.contains("//")
        || path.contains("/.")
        || path.bytes().any(|byte| matches!(byte, b'%' | b';' | b'\\'));
    if !is_suspect {
        return None;
    }
    let (spelled, is_stray) = spelled(path);
    let normal = normal(&spelled);
    let is_clear = !is_stray && spelled.strip_suffix('/').unwrap_or(&spelled) == normal;
    (!is_clear).then(|| [spelled, format!("{normal}/"), normal])
}

/// The path as it is compared with routes: unreserved characters decoded, other escapes in upper case. And whether there is
/// a stray percent sign: then the layer compares the path undecoded, which an origin may not.
fn spelled(path: &str) -> (String, bool) {
    let mut parts = path.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut is_stray = false;
    for part in parts {
        let byte = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            None => {
                is_stray = true;
                text.push('%');
                text.push_str(part);
            }
            Some(byte) => {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    text.push(byte.into());
                } else {
                    text.push('%');
                    text.push_str(&part[..2].to_ascii_uppercase());
                }
                text.push_str(&part[2..]);
            }
        }
    }
    (text, is_stray)
}

/// The path after all normalisations by origins, without a slash at its end.
fn normal(spelled: &str) -> String {
    let plain = spelled.replace("%2F", "/").replace("%5C", "/").replace('\\', "/");
    let mut segments = Vec::new();
    for segment in plain.split('/') {
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    segments.iter().flat_map(|segment| ["/", *segment]).collect()
}

impl<S, B, R> Service<Request<B>> for AmbiguousPathGuard<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<http_body_util::Either<Full<Bytes>, R>>;
    type Error = S::Error;
    type Future =
        Either<Ready<Result<Self::Response, S::Error>>, MapOk<S::Future, fn(Response<R>) -> Self::Response>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if self.is_refused(&request) {
            let refusal = problem::PATH_AMBIGUOUS.response();
            return Either::Left(ready(Ok(refusal.map(|text| http_body_util::Either::Left(text.into())))));
        }
        Either::Right(self.inner.call(request).map_ok(|response| response.map(http_body_util::Either::Right)))
    }
}

#[cfg(test)]
mod tests;
