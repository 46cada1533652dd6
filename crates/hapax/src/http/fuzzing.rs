//! The functions of the layer that the fuzz targets call. Compiled only for them, and not part of the public interface.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hapax_core::{Fingerprint, Key, Recorded, Scope};
use http::request::Parts;
use http::{HeaderMap, Method, Response, response};

use super::canonical::header::Fields;
use super::capture::{self, ReplayRules};
use super::fingerprint::{FingerprintRules, of_request};
use super::key_place::KeyPlace;
use super::key_source::KeySource;
use super::problem::{Problem, RefusalRules};
use super::scope::{ScopeRules, scope_of};
use super::webhook::Delivery;
use super::{Code, Principal, Webhook, canonical, grpc};

/// The key of a request, or the text of its refusal.
pub fn key(headers: &HeaderMap, body: &[u8], pointer: Option<&str>) -> Result<Option<Key>, String> {
    let mut source = KeySource::default();
    source.places.extend(pointer.and_then(|pointer| pointer.parse().ok()).map(KeyPlace::Json));
    let found =
        source.in_head(Fields::of(headers), None).and_then(|found| source.in_body(found, headers, body));
    found.map_err(|fault| fault.detail())
}

/// The canonical form of a path.
pub fn path(raw: &str) -> Cow<'_, str> {
    canonical::path(raw)
}

/// The canonical form of a query.
pub fn query(raw: &str) -> Cow<'_, str> {
    canonical::query(raw)
}

/// The scope of a request's key.
pub fn scope(principal: Principal, parts: &Parts) -> Option<Scope> {
    let rules = ScopeRules { principal, host: true, ..ScopeRules::default() };
    scope_of(&rules, parts, &canonical::path(parts.uri.path()), None).ok()
}

/// The fingerprint of a request, by the default rules.
pub fn fingerprint(
    method: &Method,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Option<Fingerprint> {
    of_request(&FingerprintRules::default(), method, path, Some(query), Fields::of(headers), body).ok()
}

/// A refusal over HTTP and over gRPC.
pub fn problem(
    code: Code,
    detail: String,
    type_base: &str,
    retry_after: Option<Duration>,
) -> [Response<Bytes>; 2] {
    let problem = Problem { retry_after, ..Problem::of(code, detail) };
    let rules = RefusalRules { type_base: type_base.into(), ..RefusalRules::default() };
    [problem.response(&rules), grpc::refusal(&problem)]
}

/// The outcome to store for a response.
pub fn record(parts: &response::Parts, body: Bytes, trailers: Option<&HeaderMap>) -> Recorded {
    capture::record(&ReplayRules::default(), None, parts, &body, trailers)
}

/// The response for a retry, and its trailers.
pub fn replay(retry: &HeaderMap, recorded: &Recorded) -> Option<(Response<Bytes>, Option<HeaderMap>)> {
    let replayed = capture::replay(&ReplayRules::default(), retry, recorded.clone()).ok()?;
    let mut response = Response::new(replayed.body);
    *response.status_mut() = replayed.status;
    *response.headers_mut() = replayed.headers;
    Some((response, replayed.trailers.map(|trailers| *trailers)))
}

/// The key of the event in a webhook.
pub fn webhook(webhook: &Webhook, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Result<Key, String> {
    let delivery = Delivery { target: "/hooks?a=1", headers, body };
    webhook.verify(delivery, now).map_err(|fault| fault.detail())
}
