//! The fingerprint of an HTTP request: which requests with one key count as the same (F-02 to F-08).
//!
//! It takes a complete body; reading and size limits are applied before.

use std::borrow::Cow;

use bytes::Bytes;
use hapax_core::{Fingerprint, FingerprintBuilder, Select};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};

use super::canonical::header::{Fields, codings, essence, is_json, trimmed};
use super::canonical::{self, form, multipart};
#[cfg(feature = "decode")]
use super::decode::{self, DecodeLimits};

/// Which parts of a request count.
#[derive(Clone, Debug)]
pub(crate) struct FingerprintRules {
    pub(crate) input: FingerprintInput,
    /// Sorted by name, so that the order in a file does not count.
    headers: Vec<HeaderName>,
    /// Which values of a JSON body count.
    pub(crate) json: Select,
    /// Whether compressed bodies are decoded first; otherwise they count as sent.
    #[cfg(feature = "decode")]
    pub(crate) decode: Option<DecodeLimits>,
}

/// How much of a request counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FingerprintInput {
    /// Method, path, query, media type, content and some headers.
    #[default]
    Request,
    /// Only the key: every request with it matches.
    Key,
}

impl Default for FingerprintRules {
    fn default() -> Self {
        let [api_version, x_api_version] = ["api-version", "x-api-version"].map(HeaderName::from_static);
        Self {
            input: FingerprintInput::default(),
            headers: vec![api_version, IF_MATCH, IF_NONE_MATCH, x_api_version],
            json: Select::default(),
            #[cfg(feature = "decode")]
            decode: None,
        }
    }
}

impl FingerprintRules {
    /// Counts these headers instead. Content-Type always counts and need not be listed.
    pub(crate) fn set_headers(&mut self, names: impl IntoIterator<Item = HeaderName>) {
        self.headers = names.into_iter().collect();
        self.headers.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        self.headers.dedup();
    }

    /// The headers that count, in addition to Content-Type.
    pub(crate) fn header_names(&self) -> &[HeaderName] {
        &self.headers
    }
}

/// A header that must not count was listed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the header {0} may differ between attempts of one request; leave it out")]
pub struct NeverCounts(pub(crate) HeaderName);

impl NeverCounts {
    /// Finds a header that differs between attempts of one request (F-03).
    pub(crate) fn check<'a>(names: impl IntoIterator<Item = &'a HeaderName>) -> Result<(), Self> {
        match names.into_iter().find(|name| never_counts(name)) {
            Some(name) => Err(Self(name.clone())),
            None => Ok(()),
        }
    }
}

/// Headers about the caller, time, number and path of an attempt: they may differ in a retry.
const NEVER: &[&str] = &[
    "authorization",
    "baggage",
    "b3",
    "cookie",
    "date",
    "grpc-previous-rpc-attempts",
    "grpc-timeout",
    "idempotency-key",
    "proxy-authorization",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-amzn-trace-id",
    "x-cloud-trace-context",
    "x-correlation-id",
    "x-request-id",
    "x-stripe-client-telemetry",
    "x-stripe-client-user-agent",
];

/// Prefixes of further such headers.
const NEVER_PREFIXES: &[&str] = &["accept", "x-b3-", "x-datadog-", "x-stainless-"];

fn never_counts(name: &HeaderName) -> bool {
    let name = name.as_str();
    NEVER.contains(&name) || NEVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Why a body cannot be decoded for its fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "decode"), allow(dead_code, reason = "only decoding refuses a body"))]
pub(crate) enum BodyRefused {
    /// A coding that is not gzip, deflate or br.
    CodingUnsupported,
    /// It decodes to more than the limit.
    TooLarge,
    /// It is not valid in its coding.
    Undecodable,
}

/// The fingerprint of a request. `path` is canonical; an empty query counts as none.
///
/// # Errors
/// [`BodyRefused`] if the rules require decoding and the body cannot be decoded.
pub(crate) fn of_request(
    rules: &FingerprintRules,
    method: &Method,
    path: &str,
    query: Option<&str>,
    fields: Fields<'_>,
    body: &Bytes,
) -> Result<Fingerprint, BodyRefused> {
    if rules.input == FingerprintInput::Key {
        return Ok(Fingerprint::empty());
    }
    let mut builder = endpoint(method, path);
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        builder = builder.part("query", canonical::query(query).as_bytes());
    }
    for name in &rules.headers {
        for value in fields.lines(name) {
            builder =
                builder.part("header", name.as_str().as_bytes()).part("value", trimmed(value.as_bytes()));
        }
    }
    let (bytes, codings) = opened(rules, fields, body)?;
    Ok(add_body(builder, &rules.json, fields, &codings, &bytes).build())
}

/// The fingerprint of the method and the path only. `path` is canonical.
pub(crate) fn of_endpoint(method: &Method, path: &str) -> Fingerprint {
    endpoint(method, path).build()
}

fn endpoint(method: &Method, path: &str) -> FingerprintBuilder {
    Fingerprint::builder().part("method", method.as_str().as_bytes()).part("path", path.as_bytes())
}

/// The body to hash, and its remaining codings.
type DecodedBody<'a> = (Cow<'a, [u8]>, Vec<Cow<'a, [u8]>>);

#[cfg_attr(not(feature = "decode"), allow(unused_variables, reason = "only decoding has rules"))]
fn opened<'a>(
    rules: &FingerprintRules,
    fields: Fields<'a>,
    body: &'a Bytes,
) -> Result<DecodedBody<'a>, BodyRefused> {
    let codings = codings(fields);
    #[cfg(feature = "decode")]
    if let Some(limits) = rules.decode
        && !codings.is_empty()
        && !body.is_empty()
    {
        return Ok((decode::decoded(&codings, body, &limits)?, Vec::new()));
    }
    Ok((Cow::Borrowed(body), codings))
}

fn add_body(
    mut builder: FingerprintBuilder,
    select: &Select,
    fields: Fields<'_>,
    codings: &[Cow<'_, [u8]>],
    body: &[u8],
) -> FingerprintBuilder {
    // An empty body equals a missing one and has no type.
    if body.is_empty() {
        return builder;
    }
    let mut content_types = fields.lines(&CONTENT_TYPE).map(HeaderValue::as_bytes).peekable();
    let mut format = BodyFormat::Other;
    let is_typed = content_types.peek().is_some();
    let first = content_types.next().unwrap_or_default();
    if is_typed {
        let essence = essence(first);
        builder = builder.part("type", &essence);
        format = BodyFormat::of(&essence);
    }
    for further in content_types {
        builder = builder.part("type", &essence(further));
        format = BodyFormat::Other;
    }
    for coding in codings {
        builder = builder.part("coding", coding);
        format = BodyFormat::Other;
    }
    match format {
        BodyFormat::Json => builder.json_selected("body", body, select),
        BodyFormat::Form => match form::pairs(body) {
            Some(pairs) => form::add(builder, &pairs),
            None => builder.part("body", body),
        },
        BodyFormat::Multipart => match multipart::parts(first, body) {
            Some(parts) => multipart::add(builder, first, &parts),
            None => add_as_sent(builder, fields, body),
        },
        BodyFormat::Other => add_as_sent(builder, fields, body),
    }
}

/// Adds a body byte by byte, and its multipart boundary.
fn add_as_sent(mut builder: FingerprintBuilder, fields: Fields<'_>, body: &[u8]) -> FingerprintBuilder {
    for value in fields.lines(&CONTENT_TYPE).map(|value| trimmed(value.as_bytes())) {
        if matches!(BodyFormat::of(&essence(value)), BodyFormat::Multipart) {
            builder = builder.part("multipart", value);
        }
    }
    builder.part("body", body)
}

/// How a body is parsed.
enum BodyFormat {
    Json,
    Form,
    Multipart,
    Other,
}

impl BodyFormat {
    fn of(essence: &[u8]) -> Self {
        match essence {
            b"application/x-www-form-urlencoded" => Self::Form,
            essence if is_json(essence) => Self::Json,
            essence if essence.starts_with(multipart::TYPE) => Self::Multipart,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests;
