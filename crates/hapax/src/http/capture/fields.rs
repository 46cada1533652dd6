//! Which fields of a response are stored and replayed.

use http::header::{CONNECTION, SET_COOKIE};
use http::{HeaderMap, HeaderName};

use super::ReplayRules;

impl ReplayRules {
    /// Whether a header field is stored and replayed.
    pub(super) fn keeps(&self, name: &HeaderName) -> bool {
        self.keeps_trailer(name)
            && !self.drop.contains(name)
            && self.only.as_ref().is_none_or(|only| only.contains(name) || is_essential(name.as_str()))
    }

    /// Whether a trailer is stored and replayed. The lists apply to header fields only.
    pub(in crate::http) fn keeps_trailer(&self, name: &HeaderName) -> bool {
        !is_of_the_exchange(name.as_str()) && *name != self.marker && (self.set_cookie || *name != SET_COOKIE)
    }
}

/// Whether the field tells a browser which origins may read the response.
pub(super) fn is_cors(name: &HeaderName) -> bool {
    name.as_str().starts_with("access-control-")
}

/// Fields without which a body cannot be interpreted, or a created resource not found: an allow list does not remove
/// them.
fn is_essential(name: &str) -> bool {
    matches!(name, "content-type" | "content-encoding" | "location") || name.starts_with("grpc-")
}

/// Whether the field belongs to one connection or one exchange and would be wrong in another.
fn is_of_the_exchange(name: &str) -> bool {
    match name {
        // Hop-by-hop fields (RFC 9110, section 7.6.1; RFC 9111, section 3.1).
        "connection" | "keep-alive" | "te" | "trailer" | "transfer-encoding" | "upgrade" | "alt-svc" => true,
        // The connection that carries the replay computes the framing.
        "content-length" => true,
        // A replay has its own date and was never in a cache.
        "date" | "age" => true,
        // Tracing, rate limits and timing describe the exchange, not the result.
        "request-id"
        | "x-request-id"
        | "correlation-id"
        | "x-correlation-id"
        | "server-timing"
        | "traceparent"
        | "tracestate"
        | "baggage"
        | "b3"
        | "x-amzn-trace-id"
        | "x-amzn-requestid"
        | "x-cloud-trace-context"
        | "ratelimit" => true,
        // The layer's own fields.
        "idempotency-key-derived"
        | "idempotency-outcome"
        | "idempotency-recorded"
        | "idempotency-protected" => true,
        _ => ["proxy-", "ratelimit-", "x-ratelimit-", "x-b3-", "x-datadog-"]
            .iter()
            .any(|start| name.starts_with(start)),
    }
}

/// The fields named by `Connection`: they are hop-by-hop too.
pub(super) struct ConnectionFields(Vec<HeaderName>);

impl ConnectionFields {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(CONNECTION).iter();
        let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        Self(names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()).collect())
    }

    pub(super) fn contains(&self, name: &HeaderName) -> bool {
        self.0.contains(name)
    }
}
