//! An HTTP answer as it is written by whoever knows what a retry should get: an operator, or a `reconcile` URL.
//!
//! It checks what was written and says what is wrong with it. What is replayed of an answer is the library's to say.

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

/// The most bytes of names and values together: clients take no larger heads.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 32 * 1024;

/// The fields of a head by their names.
pub type Fields = BTreeMap<String, FieldLines>;

/// The lines of one field.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum FieldLines {
    /// One line.
    One(String),
    /// Several, in their order.
    Several(Vec<String>),
}

/// An HTTP answer.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Answer)]
pub struct ResponseView {
    /// The status.
    #[schema(minimum = 200, maximum = 999)]
    pub status: u16,
    /// The fields of its head, without those that belong to one exchange, such as Content-Length and Date.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Fields,
    /// Its body, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The same for what is no text, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([0-9A-Za-z+/]{4})*$")]
    pub body_base64: Option<String>,
}

impl ResponseView {
    /// The outcome that a record is settled with.
    pub fn recorded(&self) -> Result<Recorded, Failure> {
        let body = match (&self.body, &self.body_base64) {
            (Some(_), Some(_)) => {
                return Err(invalid("there are two bodies").hint("give it as body or as body_base64"));
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

    /// The answer that a record holds or is to hold, as it is sent to the admin API.
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
        // What is answered may be confidential.
        f.debug_struct("ResponseView").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The answer with these parts.
pub fn response(status: u16, fields: &Fields, body: Bytes) -> Result<Answer, Failure> {
    let status = StatusCode::from_u16(status).ok().filter(|status| !status.is_informational());
    let status = status.ok_or_else(|| {
        invalid("this is not the status of an answer").hint("a status has three digits, such as 201")
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

/// The outcome that this answer is recorded as.
pub fn recorded(answer: Answer) -> Result<Recorded, Failure> {
    answer.recorded().map_err(|error| invalid(error.to_string()))
}

/// A line of a head as people write it: `Name: value`.
pub fn parse_field(line: &str) -> Result<(String, String), Failure> {
    let (name, value) = line
        .split_once(':')
        .ok_or_else(|| invalid("a header has no colon").hint("write it as 'Location: /orders/7'"))?;
    field(name, value.trim())?;
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// Adds a line to the fields of a head.
pub fn add(fields: &mut Fields, name: String, value: String) {
    let lines = fields.entry(name.to_ascii_lowercase()).or_insert_with(|| FieldLines::Several(Vec::new()));
    match lines {
        FieldLines::Several(lines) => lines.push(value),
        FieldLines::One(first) => *lines = FieldLines::Several(vec![std::mem::take(first), value]),
    }
}

/// The fields of a head as they are shown; bytes that are no text are replaced.
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
    /// The lines in their order.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        match self {
            Self::One(line) => std::slice::from_ref(line),
            Self::Several(lines) => lines,
        }
        .iter()
    }
}

/// A value is not repeated in the error: it may be confidential.
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
