//! [`RefusalShape`]: the format of the body of a refusal.
//!
//! The named formats are data: a media type and a template. A template is a JSON value, or a text, in which `{code}`
//! and the other fields of a refusal are replaced. This file is independent of routes and decides no status.

use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Code, Problem};

/// The media type of problem details.
const PROBLEM_JSON: &str = "application/problem+json";

/// Formats a field as text that is a number or a boolean otherwise: `{status:text}`.
const AS_TEXT: &str = ":text";

/// The formats that have a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RefusalShapeName {
    /// Problem details (RFC 9457).
    #[default]
    Problem,
    /// Problem details with the member `error` that Stripe's libraries read.
    Stripe,
    /// The error model of Google's APIs (AIP-193).
    Google,
    /// The error objects of JSON:API.
    JsonApi,
    /// Text for people.
    Plain,
}

impl RefusalShapeName {
    /// Every name.
    pub const ALL: [Self; 5] = [Self::Problem, Self::Stripe, Self::Google, Self::JsonApi, Self::Plain];

    /// The name used in files and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Stripe => "stripe",
            Self::Google => "google",
            Self::JsonApi => "jsonapi",
            Self::Plain => "plain",
        }
    }

    /// The media type, whether the members of problem details are included, and the other content.
    fn data(self) -> (&'static str, bool, Value) {
        match self {
            Self::Problem => (PROBLEM_JSON, true, json!({})),
            Self::Stripe => (
                PROBLEM_JSON,
                true,
                json!({ "error": {
                    "type": "{stripe_type}", "code": "{code}", "message": "{detail}", "doc_url": "{type}",
                } }),
            ),
            Self::Google => (
                "application/json",
                false,
                json!({ "error": {
                    "code": "{status}", "message": "{detail}", "status": "{grpc_status}",
                    "details": [{
                        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                        "reason": "{reason}", "domain": "hapax.dev",
                        "metadata": { "code": "{code}", "operation": "{operation}", "retry": "{retry:text}" },
                    }],
                } }),
            ),
            Self::JsonApi => (
                "application/vnd.api+json",
                false,
                json!({ "errors": [{
                    "status": "{status:text}", "code": "{code}", "title": "{title}", "detail": "{detail}",
                    "links": { "type": "{type}" },
                    "meta": { "operation": "{operation}", "retry": "{retry}" },
                }] }),
            ),
            Self::Plain => (
                "text/plain; charset=utf-8",
                false,
                json!("{title}: {detail}\ncode: {code}\noperation: {operation}\nretry: {retry}\n"),
            ),
        }
    }
}

impl FromStr for RefusalShapeName {
    type Err = RefusalShapeError;

    fn from_str(name: &str) -> Result<Self, RefusalShapeError> {
        let known =
            || format!("unknown format {name:?}; the formats are {}", Self::ALL.map(Self::name).join(", "));
        Self::ALL.into_iter().find(|shape| shape.name() == name).ok_or_else(|| RefusalShapeError(known()))
    }
}

/// The format of the body of a refusal: problem details by default. It affects no status and no header field but
/// `Content-Type`.
///
/// ```
/// use hapax::http::{HttpPolicy, RefusalShape, RefusalShapeName};
/// use serde_json::json;
///
/// let google = HttpPolicy::default().refusals(RefusalShapeName::Google.into());
/// let own = json!({ "statusCode": "{status}", "name": "{code}", "message": "{detail}" });
/// let own = HttpPolicy::default().refusals(RefusalShape::template("application/json", own)?);
/// # let _ = (google, own);
/// # Ok::<(), hapax::http::RefusalShapeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusalShape {
    name: Option<RefusalShapeName>,
    media_type: HeaderValue,
    with_problem: bool,
    template: Arc<Value>,
}

/// Why a template is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RefusalShapeError(String);

impl From<RefusalShapeName> for RefusalShape {
    fn from(name: RefusalShapeName) -> Self {
        let (media_type, with_problem, template) = name.data();
        let media_type = HeaderValue::from_static(media_type);
        Self { name: Some(name), media_type, with_problem, template: Arc::new(template) }
    }
}

impl Default for RefusalShape {
    fn default() -> Self {
        RefusalShapeName::default().into()
    }
}

impl RefusalShape {
    /// The fields of a refusal. `operation` is the id of the caller's own record, `retry` whether the same request may
    /// succeed after a while, `type` the address of the page about it, and `reason` the code in the form `KEY_REUSED`.
    pub const FIELDS: [&str; 10] = [
        "code",
        "title",
        "detail",
        "status",
        "operation",
        "retry",
        "type",
        "reason",
        "grpc_status",
        "stripe_type",
    ];

    /// A custom format. `body` is the template: a text, or JSON. In its texts each `{field}` is replaced, where `field`
    /// is one of [`FIELDS`](Self::FIELDS). A text that consists of one field becomes its value, so `{status}` becomes a
    /// number and `{retry}` a boolean; `{status:text}` stays text. If there is no operation, the member, or the line of
    /// a text, is omitted.
    ///
    /// # Errors
    /// For a media type that is not a valid field value, and for an unknown field.
    pub fn template(media_type: &str, body: Value) -> Result<Self, RefusalShapeError> {
        let is_media_type = media_type.split_once('/').is_some_and(|(kind, rest)| {
            let is_token = |text: &str| {
                !text.is_empty()
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
            };
            is_token(kind) && is_token(rest.split(';').next().unwrap_or_default().trim_end())
        });
        let media_type = HeaderValue::from_str(media_type).ok().filter(|_| is_media_type);
        let media_type = media_type.ok_or_else(|| {
            RefusalShapeError("the media type is invalid; write it as in \"application/json\"".to_owned())
        })?;
        check(&body)?;
        Ok(Self { name: None, media_type, with_problem: false, template: Arc::new(body) })
    }

    /// The name, unless the format is custom.
    pub fn name(&self) -> Option<RefusalShapeName> {
        self.name
    }

    /// The value of `Content-Type`.
    pub fn media_type(&self) -> &HeaderValue {
        &self.media_type
    }

    /// Whether the members of problem details are in the body.
    pub fn has_problem_members(&self) -> bool {
        self.with_problem
    }

    /// The template, in addition to the members of problem details if those are included.
    pub fn body(&self) -> &Value {
        &self.template
    }

    /// The body of one refusal. `document` is its problem details.
    pub(super) fn fill(&self, values: &TemplateValues<'_>, document: &impl Serialize) -> Bytes {
        if self.name == Some(RefusalShapeName::Problem) {
            return serde_json::to_vec(document).expect("text and numbers always have a JSON form").into();
        }
        if let Value::String(text) = &*self.template {
            return values.lines(text).into();
        }
        let mut body = values.filled(&self.template).unwrap_or_default();
        if self.with_problem
            && let (Value::Object(body), Ok(Value::Object(document))) =
                (&mut body, serde_json::to_value(document))
        {
            body.extend(document);
        }
        body.to_string().into()
    }

    /// An example of the body of a refusal with this code.
    pub(in crate::http) fn example(&self, code: Code, status: StatusCode, kind: &str) -> Value {
        let problem = Problem::from(code);
        let values = TemplateValues { problem: &problem, kind, status };
        match &*self.template {
            Value::String(text) => Value::String(values.lines(text)),
            template => values.filled(template).unwrap_or_default(),
        }
    }
}

/// Checks that every field is known.
fn check(template: &Value) -> Result<(), RefusalShapeError> {
    match template {
        Value::String(text) => {
            let unknown = pieces(text).find_map(|piece| match piece {
                TemplatePiece::Field(name, _) if !RefusalShape::FIELDS.contains(&name) => Some(name),
                _ => None,
            });
            unknown.map_or(Ok(()), |name| {
                let known = RefusalShape::FIELDS.join(", ");
                Err(RefusalShapeError(format!("unknown field {name:?}; the fields are {known}")))
            })
        }
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Object(members) => members.values().try_for_each(check),
        _ => Ok(()),
    }
}

enum TemplatePiece<'a> {
    Text(&'a str),
    /// The name, and whether to format its value as text.
    Field(&'a str, bool),
}

/// A text and the fields in it. A brace that does not begin a field is literal.
fn pieces(mut text: &str) -> impl Iterator<Item = TemplatePiece<'_>> {
    std::iter::from_fn(move || {
        if let Some((field, rest)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            let name = field.strip_suffix(AS_TEXT);
            let (name, is_text) = (name.unwrap_or(field), name.is_some());
            if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
                text = rest;
                return Some(TemplatePiece::Field(name, is_text));
            }
        }
        // At least one character, so that a brace that does not begin a field is skipped.
        let begun = text.chars().next()?.len_utf8();
        let end = text[begun..].find('{').map_or(text.len(), |at| begun + at);
        let (piece, rest) = text.split_at(end);
        text = rest;
        Some(TemplatePiece::Text(piece))
    })
}

/// The values of one refusal for a template.
pub(super) struct TemplateValues<'a> {
    pub(super) problem: &'a Problem,
    /// Its `type`.
    pub(super) kind: &'a str,
    pub(super) status: StatusCode,
}

impl TemplateValues<'_> {
    /// The template with its fields replaced; `None` for a text about an operation if there is none.
    fn filled(&self, template: &Value) -> Option<Value> {
        match template {
            Value::String(text) => self.text(text),
            Value::Array(items) => Some(items.iter().filter_map(|item| self.filled(item)).collect()),
            Value::Object(members) => {
                let filled =
                    members.iter().filter_map(|(name, value)| Some((name.clone(), self.filled(value)?)));
                Some(Value::Object(filled.collect::<Map<_, _>>()))
            }
            other => Some(other.clone()),
        }
    }

    fn text(&self, text: &str) -> Option<Value> {
        let mut found = pieces(text);
        if let (Some(TemplatePiece::Field(name, false)), None) = (found.next(), found.next()) {
            return self.field(name);
        }
        self.line(text).map(Value::String)
    }

    /// A text line by line, without the lines about an operation if there is none.
    fn lines(&self, text: &str) -> String {
        text.split_inclusive('\n').filter_map(|line| self.line(line)).collect()
    }

    fn line(&self, text: &str) -> Option<String> {
        let piece = |piece| match piece {
            TemplatePiece::Text(text) => Some(text.to_owned()),
            TemplatePiece::Field(name, _) => self.field(name).map(|value| match value {
                Value::String(text) => text,
                other => other.to_string(),
            }),
        };
        pieces(text).map(piece).collect()
    }

    fn field(&self, name: &str) -> Option<Value> {
        let Problem { code, detail, reference, .. } = self.problem;
        Some(match name {
            "code" => code.name().into(),
            "title" => code.title().into(),
            "detail" => detail.as_ref().into(),
            "status" => self.status.as_u16().into(),
            "operation" => (*reference)?.to_string().into(),
            "retry" => code.retryable().into(),
            "type" => self.kind.into(),
            "reason" => code.name().replace('-', "_").to_ascii_uppercase().into(),
            "grpc_status" => code.grpc_name().into(),
            "stripe_type" => stripe_type(*code).into(),
            _ => return None,
        })
    }
}

/// The `type` of Stripe's error for a code.
fn stripe_type(code: Code) -> &'static str {
    match code {
        Code::KeyExpired | Code::KeyReused | Code::InProgress | Code::Uncertain | Code::ResultUnavailable => {
            "idempotency_error"
        }
        Code::RateLimited => "rate_limit",
        Code::StoreUnavailable | Code::UpstreamUnavailable | Code::Draining | Code::Overloaded => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests;
