//! Every refusal that comes from us and not from the handler: its code, and the response that carries it.
//!
//! The table of codes is in `problem/table.rs`, what bodies look like in `problem/shape.rs`. This file writes problem
//! details (RFC 9457). It does not know when a request is refused, and it never sees a stored answer or a key: what it is
//! not given it cannot tell.

mod shape;
mod table;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_core::RecordId;
use http::header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, LINK, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;

use super::classify::Outcome;
pub use shape::{RefusalShape, RefusalShapeError, RefusalShapeName};
pub use table::Code;

/// What the `type` of a problem begins with; the code follows. The page is `docs/errors/CODE.md`.
pub const TYPE_BASE: &str = "https://hapax.dev/errors/";

/// What follows the `type` where a refusal links to its page.
const LINK_END: &str = ">; rel=\"describedby\"";

/// Nobody is told to wait for longer: an early question costs little, and what is waited for may have ended.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// What is told when it is worth asking again and nobody knows when.
const WAIT_DEFAULT: Duration = Duration::from_secs(1);

/// One refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    /// What went wrong this time, for people. Never a key, a body or anything of another caller.
    pub(crate) detail: Cow<'static, str>,
    /// Another status than the code's, for this refusal only.
    pub(crate) status: Option<StatusCode>,
    /// When it is worth asking again.
    pub(crate) retry_after: Option<Duration>,
    /// The record that the refusal is about: the caller's own.
    pub(crate) reference: Option<RecordId>,
    /// Whether the key may have been used before, so that the operation must keep it.
    pub(crate) keeps_key: bool,
}

impl From<Code> for Problem {
    /// The refusal as it usually is.
    fn from(code: Code) -> Self {
        let detail = Cow::Borrowed(code.detail());
        Self { code, detail, status: None, retry_after: None, reference: None, keeps_key: false }
    }
}

impl Problem {
    /// The refusal with its own words.
    pub(crate) fn of(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { detail: detail.into(), ..Self::from(code) }
    }

    pub(crate) fn retry_after(self, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status: Some(status), ..self }
    }

    pub(crate) fn about(self, id: RecordId) -> Self {
        Self { reference: Some(id), ..self }
    }

    /// The key itself is sound, and an earlier request with it may have run.
    pub(crate) fn with_same_key(self) -> Self {
        Self { keeps_key: true, ..self }
    }

    /// How long the caller should wait before it sends the same request again. None: it should not.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.code.retryable().then(|| self.retry_after.unwrap_or(WAIT_DEFAULT).min(WAIT_MAX))
    }

    /// What this refusal means for a claim of the same request by a layer in front.
    pub(crate) fn outcome(&self) -> Outcome {
        self.code.outcome(self.status)
    }

    /// The refusal as a response.
    pub(crate) fn response(&self, rules: &RefusalRules) -> Response<Bytes> {
        let status = rules.status(self);
        let kind = format!("{}{}", rules.type_base, self.code.name());
        let told = shape::Told { problem: self, kind: &kind, status };
        let mut response = Response::new(rules.shape.fill(&told, &self.document(&kind, status)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, rules.shape.media_type().clone());
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static("en"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Ok(link) = HeaderValue::try_from(format!("<{kind}{LINK_END}")) {
            headers.insert(LINK, link);
        }
        if let Some(wait) = self.wait() {
            headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        rules.hint(self.code.retryable(), headers);
        response.extensions_mut().insert(self.code);
        response
    }

    fn document<'a>(&'a self, kind: &'a str, status: StatusCode) -> Document<'a> {
        Document {
            kind,
            title: self.code.title(),
            status: status.as_u16(),
            detail: &self.detail,
            instance: self.reference.map(Instance),
            retryable: self.code.retryable(),
            retry_with_same_key: self.keeps_key || self.code.retry_with_same_key(),
            safe_new_key: !self.keeps_key && self.code.safe_new_key(),
            operation: self.reference.map(|id| id.to_string()),
        }
    }
}

impl Code {
    /// The refusal as a response, for what stands behind the layer and refuses in the same words. A layer around it
    /// answers with it as its route says refusals, with the statuses and fields of the route, and names the record.
    ///
    /// `status` replaces the code's own where the place of the failure has another: 502 or 504 for an
    /// [`Uncertain`](Self::Uncertain) that came just now.
    ///
    /// ```
    /// use hapax::http::Code;
    ///
    /// let response = Code::UpstreamUnavailable.response(None, "no address of the origin takes connections");
    /// assert_eq!(response.status(), 502);
    /// ```
    pub fn response(self, status: Option<StatusCode>, detail: &'static str) -> Response<Bytes> {
        let problem = Problem { status, ..Problem::of(self, detail) };
        let mut response = problem.response(&RefusalRules::default());
        response.extensions_mut().insert(Refused { problem, is_grpc: false });
        response
    }

    /// The same for a gRPC call: an answer of nothing but trailers.
    pub fn grpc_response(self, detail: &'static str) -> Response<Bytes> {
        let problem = Problem::of(self, detail);
        let mut response = super::grpc::refusal(&problem);
        response.extensions_mut().insert(Refused { problem, is_grpc: true });
        response
    }
}

/// In the extensions of a response: the refusal that it tells, by what stands behind the layer.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) problem: Problem,
    /// The request was a gRPC call, whatever its route speaks.
    pub(crate) is_grpc: bool,
}

/// The refusal that these are the fields of, when another layer made it in another process. Its link tells, whatever the
/// shape of its body.
pub(crate) fn refused_with(headers: &HeaderMap) -> Option<Code> {
    let code = |link: &HeaderValue| {
        let name = link.to_str().ok()?.strip_prefix('<')?.strip_prefix(TYPE_BASE)?.strip_suffix(LINK_END)?;
        Code::from_name(name)
    };
    headers.get_all(LINK).iter().find_map(code)
}

/// At least one: a caller that is told to wait for zero seconds does not wait.
fn whole_seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    (wait.as_secs() + begun).max(1)
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<Instance>,
    retryable: bool,
    retry_with_same_key: bool,
    safe_new_key: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
}

struct Instance(RecordId);

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "urn:hapax:record:{}", self.0)
    }
}

impl Serialize for Instance {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How a route says its refusals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RefusalRules {
    /// Other statuses than the table's. The type stays the same.
    pub(crate) statuses: Vec<(Code, StatusCode)>,
    /// Fields that tell clients in one word whether to retry.
    pub(crate) hints: Vec<HeaderName>,
    /// What the type begins with.
    pub(crate) type_base: Arc<str>,
    /// What bodies look like.
    pub(crate) shape: RefusalShape,
}

impl Default for RefusalRules {
    fn default() -> Self {
        let hints = vec![HeaderName::from_static("x-should-retry")];
        let shape = RefusalShape::default();
        Self { statuses: Vec::new(), hints, type_base: Arc::from(TYPE_BASE), shape }
    }
}

impl RefusalRules {
    /// The status that this code is usually answered with.
    pub(crate) fn usual_status(&self, code: Code) -> StatusCode {
        self.chosen(code).unwrap_or_else(|| code.status())
    }

    /// The status of this refusal. What the route chose counts also where the request itself was cut off, except when it
    /// goes on out of sight: a layer in front knows that by the status alone (X-05).
    fn status(&self, problem: &Problem) -> StatusCode {
        let (code, own) = (problem.code, problem.status);
        let told =
            if code == Code::InProgress { own.or(self.chosen(code)) } else { self.chosen(code).or(own) };
        told.unwrap_or_else(|| code.status())
    }

    /// The status that the route has chosen for this code.
    pub(crate) fn chosen(&self, code: Code) -> Option<StatusCode> {
        let mut chosen = self.statuses.iter().rev().filter(|(remapped, _)| *remapped == code);
        chosen.next().map(|(_, status)| *status)
    }

    /// Tells clients whether to retry.
    pub(crate) fn hint(&self, retry: bool, headers: &mut HeaderMap) {
        let word = HeaderValue::from_static(if retry { "true" } else { "false" });
        for name in &self.hints {
            headers.insert(name, word.clone());
        }
    }
}

/// Whether clients retry after this status by themselves. A replay of it stays as it is, so they are told not to.
pub(crate) fn is_retried(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 425 | 429) || status.is_server_error()
}

#[cfg(test)]
mod tests;
