//! The refusals of the layer: their codes, and the responses that carry them.
//!
//! The table of codes is in `problem/table.rs`, the formats of bodies in `problem/shape.rs`. This file writes problem
//! details (RFC 9457). It does not decide when a request is refused, and it never has access to a stored response or a
//! key, so it cannot leak them.

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

/// The prefix of the `type` of a problem; the code follows. The page is `docs/errors/CODE.md`.
pub const TYPE_BASE: &str = "https://hapax.dev/errors/";

/// The text after the `type` in a link to the page of a refusal.
const LINK_END: &str = ">; rel=\"describedby\"";

/// The maximum of `Retry-After`: an early retry costs little, and the operation may have ended.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// The default of `Retry-After` if a retry is useful and the time is unknown.
const WAIT_DEFAULT: Duration = Duration::from_secs(1);

/// One refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    /// What went wrong in this case, for people. Never a key, a body or data of another caller.
    pub(crate) detail: Cow<'static, str>,
    /// Overrides the status of the code, for this refusal only.
    pub(crate) status: Option<StatusCode>,
    /// When a retry is useful.
    pub(crate) retry_after: Option<Duration>,
    /// The record of the refusal: the caller's own.
    pub(crate) reference: Option<RecordId>,
    /// Whether the key may have been used before, so that a retry must carry the same key.
    pub(crate) keeps_key: bool,
}

impl From<Code> for Problem {
    /// The refusal with its default text.
    fn from(code: Code) -> Self {
        let detail = Cow::Borrowed(code.detail());
        Self { code, detail, status: None, retry_after: None, reference: None, keeps_key: false }
    }
}

impl Problem {
    /// The refusal with a specific text.
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

    /// The key is valid, and an earlier request with it may have run.
    pub(crate) fn with_same_key(self) -> Self {
        Self { keeps_key: true, ..self }
    }

    /// How long the caller should wait before it sends the same request again; `None` if it should not.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.code.retryable().then(|| self.retry_after.unwrap_or(WAIT_DEFAULT).min(WAIT_MAX))
    }

    /// The outcome for a claim of the same request by an outer layer.
    pub(crate) fn outcome(&self) -> Outcome {
        self.code.outcome(self.status)
    }

    /// The refusal as a response.
    pub(crate) fn response(&self, rules: &RefusalRules) -> Response<Bytes> {
        let status = rules.status(self);
        let kind = format!("{}{}", rules.type_base, self.code.name());
        let values = shape::TemplateValues { problem: self, kind: &kind, status };
        let mut response = Response::new(rules.shape.fill(&values, &self.document(&kind, status)));
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

    fn document<'a>(&'a self, kind: &'a str, status: StatusCode) -> ProblemDetails<'a> {
        ProblemDetails {
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
    /// The refusal as a response, for a service behind the layer that refuses in the same format. An outer layer
    /// replaces it with a refusal in the format of its route, with the route's statuses and fields, and adds the
    /// record.
    ///
    /// `status` overrides the code's own, such as 502 or 504 for an [`Uncertain`](Self::Uncertain) outcome of this
    /// request.
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

    /// The same for a gRPC call: a Trailers-Only response.
    pub fn grpc_response(self, detail: &'static str) -> Response<Bytes> {
        let problem = Problem::of(self, detail);
        let mut response = super::grpc::refusal(&problem);
        response.extensions_mut().insert(Refused { problem, is_grpc: true });
        response
    }
}

/// In the extensions of a response: the refusal that it carries, set by a service behind the layer.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) problem: Problem,
    /// Whether the request was a gRPC call, independent of its route.
    pub(crate) is_grpc: bool,
}

/// The refusal that these response fields belong to, if a layer in another process made it. Its link identifies it,
/// independent of the format of its body.
pub(crate) fn refused_with(headers: &HeaderMap) -> Option<Code> {
    let code = |link: &HeaderValue| {
        let name = link.to_str().ok()?.strip_prefix('<')?.strip_prefix(TYPE_BASE)?.strip_suffix(LINK_END)?;
        Code::from_name(name)
    };
    headers.get_all(LINK).iter().find_map(code)
}

/// At least one: a caller with a wait of zero seconds does not wait.
fn whole_seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    (wait.as_secs() + begun).max(1)
}

#[derive(Serialize)]
struct ProblemDetails<'a> {
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

/// How a route formats its refusals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RefusalRules {
    /// Statuses that differ from the table. The type is unchanged.
    pub(crate) statuses: Vec<(Code, StatusCode)>,
    /// Fields that state whether to retry.
    pub(crate) hints: Vec<HeaderName>,
    /// The prefix of the type.
    pub(crate) type_base: Arc<str>,
    /// The format of bodies.
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
    /// The status of responses with this code.
    pub(crate) fn usual_status(&self, code: Code) -> StatusCode {
        self.chosen(code).unwrap_or_else(|| code.status())
    }

    /// The status of this refusal. The route's choice also applies if the request itself was cut off, unless its run
    /// continues in the background: an outer layer detects that by the status alone (X-05).
    fn status(&self, problem: &Problem) -> StatusCode {
        let (code, own) = (problem.code, problem.status);
        let stated =
            if code == Code::InProgress { own.or(self.chosen(code)) } else { self.chosen(code).or(own) };
        stated.unwrap_or_else(|| code.status())
    }

    /// The status that the route chose for this code.
    pub(crate) fn chosen(&self, code: Code) -> Option<StatusCode> {
        let mut chosen = self.statuses.iter().rev().filter(|(remapped, _)| *remapped == code);
        chosen.next().map(|(_, status)| *status)
    }

    /// Adds the fields that state whether to retry.
    pub(crate) fn hint(&self, retry: bool, headers: &mut HeaderMap) {
        let word = HeaderValue::from_static(if retry { "true" } else { "false" });
        for name in &self.hints {
            headers.insert(name, word.clone());
        }
    }
}

/// Whether clients retry this status automatically. A replay would repeat it, so such retries are forbidden.
pub(crate) fn is_retried(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 425 | 429) || status.is_server_error()
}

#[cfg(test)]
mod tests;
