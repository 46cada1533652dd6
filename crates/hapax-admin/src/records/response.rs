//! The HTTP response that retries of a settled record receive, as given by an operator or a `reconcile` URL.
//!
//! It is validated here. Which parts of it are stored and replayed is decided by the library.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hapax::http::Answer;
use hapax_core::Recorded;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::failure::{Code, Failure};

/// The most bytes of names and values together: clients accept no larger heads.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 32 * 1024;

/// Header fields by name.
pub type Fields = BTreeMap<String, FieldLines>;

/// The values of a header field.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum FieldLines {
    /// One value.
    One(String),
    /// Several values, in order.
    Several(Vec<String>),
}

/// An HTTP response.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Answer)]
pub struct ResponseView {
    /// The status.
    #[schema(minimum = 200, maximum = 999)]
    pub status: u16,
    /// The header fields, without those of a single exchange, such as Content-Length and Date.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Fields,
    /// The body, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The body in base64, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([0-9A-Za-z+/]{4})*$")]
    pub body_base64: Option<String>,
}

impl ResponseView {
    /// The outcome with which a record is settled.
    pub fn recorded(&self) -> Result<Recorded, Failure> {
        let body = match (&self.body, &self.body_base64) {
            (Some(_), Some(_)) => {
                return Err(invalid("two bodies are given").hint("use either body or body_base64"));
            }
            (Some(text), None) => text.clone().into(),
            (None, Some(digits)) => STANDARD
                .decode(digits)
                .map_err(|error| invalid("body_base64 is not base64").because(error))?
                .into(),
            (None, None) => Bytes::new(),
        };
        recorded(response(self.status, &self.headers, body)?)
    }

    /// The view of a stored response, or of one to be stored.
    pub fn of(answer: &Answer) -> Self {
        Self {
            status: answer.status.as_u16(),
            headers: fields(&answer.headers),
            body: None,
            body_base64: Some(STANDARD.encode(&answer.body)),
        }
    }
}

impl fmt::Debug for ResponseView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The response may be confidential.
        f.debug_struct("ResponseView").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Validates the parts of a response.
pub fn response(status: u16, fields: &Fields, body: Bytes) -> Result<Answer, Failure> {
    let status = StatusCode::from_u16(status).ok().filter(|status| !status.is_informational());
    let status = status.ok_or_else(|| {
        invalid("this is not the status of a response").hint("a status has three digits, such as 201")
    })?;
    let mut answer = Answer::new(status, body);
    let mut bytes = 0;
    for (name, lines) in fields {
        for line in lines.iter() {
            bytes += name.len() + line.len();
            if bytes > RESPONSE_HEAD_BYTES_MAX {
                return Err(invalid(format!("the head has more than {RESPONSE_HEAD_BYTES_MAX} bytes")));
            }
            let (name, value) = field(name, line)?;
            if answer.headers.try_append(name, value).is_err() {
                return Err(invalid("the head has too many fields"));
            }
        }
    }
    Ok(answer)
}

/// The outcome that stores this response.
pub fn recorded(answer: Answer) -> Result<Recorded, Failure> {
    answer.recorded().map_err(|error| invalid(error.to_string()))
}

/// Parses a header line: `Name: value`.
pub fn parse_field(line: &str) -> Result<(String, String), Failure> {
    let (name, value) = line
        .split_once(':')
        .ok_or_else(|| invalid("a header has no colon").hint("write it as 'Location: /orders/7'"))?;
    field(name, value.trim())?;
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// Adds a value to the header fields.
pub fn add(fields: &mut Fields, name: String, value: String) {
    let lines = fields.entry(name.to_ascii_lowercase()).or_insert_with(|| FieldLines::Several(Vec::new()));
    match lines {
        FieldLines::Several(lines) => lines.push(value),
        FieldLines::One(first) => *lines = FieldLines::Several(vec![std::mem::take(first), value]),
    }
}

/// The header fields for display. Bytes that are not UTF-8 are replaced.
pub fn fields(headers: &HeaderMap) -> Fields {
    let lines = |name: &HeaderName| {
        let mut lines: Vec<_> = headers
            .get_all(name)
            .iter()
            .map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned())
            .collect();
        if lines.len() == 1 { FieldLines::One(lines.remove(0)) } else { FieldLines::Several(lines) }
    };
    headers.keys().map(|name| (name.to_string(), lines(name))).collect()
}

impl FieldLines {
    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        match self {
            Self::One(line) => std::slice::from_ref(line),
            Self::Several(lines) => lines,
        }
        .iter()
    }
}

/// The error does not contain the value, which may be confidential.
fn field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let field = HeaderName::try_from(name).map_err(|_| {
        invalid("a header has a name that HTTP does not allow").hint("a name is a single word")
    })?;
    let value = HeaderValue::try_from(value).map_err(|_| {
        invalid(format!("the header {field} has a value that HTTP does not allow"))
            .hint("a value is one line without control characters")
    })?;
    Ok((field, value))
}

fn invalid(what: impl Into<String>) -> Failure {
    Failure::new(Code::InputInvalid, what)
}

#[cfg(test)]
mod tests;
