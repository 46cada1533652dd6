//! [`Problem`]: a refusal of an idempotency layer as a client reads it (RFC 9457), and what its type means for a retry.
//!
//! The types are those of `spec/protocol.md`, E-02. A type is known by the last segment of its URI, since a deployment may
//! publish its pages under a base of its own.

mod link;

use std::fmt;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, LINK};
use serde_json::Value;

/// The base of Hapax's own types. Every refusal links to a page below it, also where its body has another format or type.
const TYPE_BASE: &str = "https://hapax.dev/errors/";

/// The refusal that says that the operation happened.
pub(crate) const RESULT_UNAVAILABLE: &str = "result-unavailable";

/// What a type means for the call that got it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// The operation runs: its response is available later.
    InProgress,
    /// Nothing was executed, and the same request may succeed later.
    Later,
    /// It is unknown whether the operation happened.
    Uncertain,
    /// The key was used for another request.
    Mismatch,
    /// The same request is refused again.
    Refused,
}

/// The meaning of a type, by its last segment; `None` for a type that is not one of Hapax.
pub(crate) fn meaning(code: &str) -> Option<Meaning> {
    Some(match code {
        "in-progress" => Meaning::InProgress,
        "rate-limited"
        | "store-unavailable"
        | "upstream-unavailable"
        | "draining"
        | "overloaded"
        | "too-early"
        | "body-incomplete" => Meaning::Later,
        "uncertain" => Meaning::Uncertain,
        "key-reused" => Meaning::Mismatch,
        "key-missing" | "key-invalid" | "key-expired" | "result-unavailable" | "too-large"
        | "principal-missing" | "digest-mismatch" | "coding-unsupported" | "signature-invalid"
        | "not-repeatable" => Meaning::Refused,
        _ => return None,
    })
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Problem {
    /// The URI of its type.
    pub kind: String,
    /// Its title, for people.
    pub title: Option<String>,
    /// What went wrong in this case, for people.
    pub detail: Option<String>,
    /// The id of the record at the server, with which its operator finds it.
    pub operation: Option<String>,
    /// Whether the type is one of Hapax's own. That of another vendor decides on retries too, but it does not say that
    /// nothing was executed: another vendor's `overloaded` may come from the middle of an operation.
    pub(crate) is_own: bool,
}

impl Problem {
    /// The last segment of the type, such as `key-missing`.
    pub fn code(&self) -> &str {
        self.kind.rsplit(['/', '#', ':']).next().unwrap_or_default()
    }

    pub(crate) fn meaning(&self) -> Option<Meaning> {
        meaning(self.code())
    }

    /// The problem of a response, if it has one of a known type.
    pub(crate) fn of(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let pages: Vec<&str> = pages(headers).collect();
        let linked = pages.iter().map(|page| Self { kind: (*page).to_owned(), ..Self::default() });
        let in_body = is_document(headers).then(|| Self::parse(body)).flatten();
        let mut problem = in_body.into_iter().chain(linked).find(|problem| problem.meaning().is_some())?;
        problem.is_own = problem.kind.starts_with(TYPE_BASE)
            || pages.iter().any(|page| page.strip_prefix(TYPE_BASE) == Some(problem.code()));
        Some(problem)
    }

    /// Members of other types than expected are ignored, as RFC 9457 demands.
    fn parse(body: &[u8]) -> Option<Self> {
        let document: Value = serde_json::from_slice(body).ok()?;
        let text = |name| document.get(name).and_then(Value::as_str).map(str::to_owned);
        let (title, detail, operation) = (text("title"), text("detail"), text("operation"));
        Some(Self { kind: text("type")?, title, detail, operation, is_own: false })
    }
}

/// The pages of Hapax's own types that the fields link to.
fn pages(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(LINK).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(link::described_by).filter(|target| target.starts_with(TYPE_BASE))
}

/// Whether the body is a problem document.
pub(crate) fn is_document(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/problem+json")
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())?;
        match self.detail.as_ref().or(self.title.as_ref()) {
            Some(text) => write!(f, ": {text}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
