//! [`Unambiguous`]: refuses a protected request whose path an origin could take for another one.
//!
//! Which policy holds, and which record a key means, is decided by the path as it was sent. Some origins read `//`,
//! `/../`, `;…`, a backslash or an encoded slash as something else. A request could slip past the route that asks for
//! a key, or run again under the same key, by nothing but another spelling. What comes of a request that has one
//! reading only is none of this file's business.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::TryFutureExt as _;
use futures_util::future::{Either, MapOk, Ready, ready};
use hapax::http::IdempotencyLayer;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use crate::problem;

/// Answers such requests itself, and hands on all others.
#[derive(Clone, Debug)]
pub(super) struct Unambiguous<S> {
    inner: S,
    /// The one behind.
    layer: IdempotencyLayer,
}

impl<S> Unambiguous<S> {
    pub(super) fn new(inner: S, layer: IdempotencyLayer) -> Self {
        Self { inner, layer }
    }

    /// Whether the path could be read so that the request is protected, or so that it is not.
    fn is_refused<B>(&self, request: &Request<B>) -> bool {
        let Some(readings) = readings(request.uri().path()) else { return false };
        readings.iter().any(|path| self.layer.protects(request.method(), path, request.headers()))
    }
}

/// What a path may be taken for; none where everybody takes it for the same. A slash at the end may count or not,
/// but one alone makes nothing ambiguous.
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

/// The path as routes are compared with: unreserved characters plain, other encoded ones in upper case. And whether a
/// percent sign encodes nothing: the layer then compares the path as it is, and an origin perhaps does not.
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

/// The path after everything that an origin might do to it, without a slash at its end.
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

impl<S, B, R> Service<Request<B>> for Unambiguous<S>
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
