//! Extracts one value from a JSON text by a JSON pointer (RFC 6901).
//!
//! A duplicate name on the path is an error, because parsers disagree on which of the members counts.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Json, JsonError, parse};

/// A JSON pointer (RFC 6901): `/order/id`, `/items/0`. The empty pointer is the whole text.
///
/// ```
/// use hapax_core::{JsonPointer, json_string_at};
///
/// let id: JsonPointer = "/order/id".parse()?;
/// assert_eq!(json_string_at(br#"{"order": {"id": "a-1"}}"#, &id)?.as_deref(), Some("a-1"));
/// assert_eq!(json_string_at(br#"{"order": {}}"#, &id)?, None);
/// assert!(json_string_at(br#"{"order": {"id": 1}}"#, &id).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPointer {
    text: Arc<str>,
    /// Unescaped, outermost first.
    names: Arc<[Box<str>]>,
}

impl JsonPointer {
    /// The pointer to a member of the outermost object; escapes `name`.
    pub fn member(name: &str) -> Self {
        let text = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        Self { text: text.into(), names: Arc::new([name.into()]) }
    }

    /// The pointer in its escaped form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The unescaped names of the path, outermost first.
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }
}

impl FromStr for JsonPointer {
    type Err = JsonPointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.is_empty() && !text.starts_with('/') {
            return Err(JsonPointerError { at: 0, why: "it must start with /" });
        }
        for (at, _) in text.match_indices('~') {
            if !matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')) {
                return Err(JsonPointerError { at, why: "write ~0 for ~ and ~1 for /" });
            }
        }
        // In this order: ~01 is ~1, not /.
        let names = text.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~").into());
        Ok(Self { text: text.into(), names: names.collect() })
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonPointer({:?})", self.text)
    }
}

/// An error parsing a [`JsonPointer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonPointerError {
    at: usize,
    why: &'static str,
}

impl fmt::Display for JsonPointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the JSON pointer is malformed at position {}: {}", self.at, self.why)
    }
}

impl std::error::Error for JsonPointerError {}

/// Why a pointer does not lead to a string. It shows nothing of the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum JsonStringError {
    /// The text is not JSON, or nests deeper than [`JSON_DEPTH_MAX`](crate::JSON_DEPTH_MAX).
    NotJson {
        /// The position of the first invalid byte.
        at: usize,
        /// The syntax error.
        why: &'static str,
    },
    /// A name on the path occurs more than once.
    Repeated,
    /// The value is not a string.
    NotString {
        /// The kind of the value.
        found: &'static str,
    },
}

impl fmt::Display for JsonStringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson { at, why } => write!(f, "the text is not JSON at position {at}: {why}"),
            Self::Repeated => f.write_str("a name on its path occurs more than once; write it once"),
            Self::NotString { found } => write!(f, "there is {found}; write a string"),
        }
    }
}

impl std::error::Error for JsonStringError {}

impl From<JsonError> for JsonStringError {
    fn from(error: JsonError) -> Self {
        Self::NotJson { at: error.at, why: error.why }
    }
}

/// The string at `pointer`; `None` when the value is missing or `null`.
///
/// # Errors
/// [`JsonStringError`] when the text is not JSON, a name on the path is repeated, or the value is not a string.
pub fn json_string_at<'a>(
    text: &'a [u8],
    pointer: &JsonPointer,
) -> Result<Option<Cow<'a, str>>, JsonStringError> {
    match value_at(text, pointer)? {
        Some(Json::String(content)) => Ok(Some(content)),
        None | Some(Json::Null) => Ok(None),
        Some(Json::Bool(_)) => Err(JsonStringError::NotString { found: "a boolean" }),
        Some(Json::Number(_)) => Err(JsonStringError::NotString { found: "a number" }),
        Some(Json::Array(_)) => Err(JsonStringError::NotString { found: "an array" }),
        Some(Json::Object(_)) => Err(JsonStringError::NotString { found: "an object" }),
    }
}

/// As [`json_string_at`], but also accepts a number, as written, and a boolean.
///
/// # Errors
/// As [`json_string_at`], except for a number or a boolean.
pub fn json_text_at<'a>(
    text: &'a [u8],
    pointer: &JsonPointer,
) -> Result<Option<Cow<'a, str>>, JsonStringError> {
    match value_at(text, pointer)? {
        Some(Json::String(content)) => Ok(Some(content)),
        Some(Json::Number(number)) => Ok(Some(Cow::Borrowed(number.text))),
        Some(Json::Bool(truth)) => Ok(Some(Cow::Borrowed(if truth { "true" } else { "false" }))),
        None | Some(Json::Null) => Ok(None),
        Some(Json::Array(_)) => Err(JsonStringError::NotString { found: "an array" }),
        Some(Json::Object(_)) => Err(JsonStringError::NotString { found: "an object" }),
    }
}

fn value_at<'a>(text: &'a [u8], pointer: &JsonPointer) -> Result<Option<Json<'a>>, JsonStringError> {
    let mut value = parse(text)?;
    for name in pointer.names() {
        let Some(inner) = step(value, name)? else {
            return Ok(None);
        };
        value = inner;
    }
    Ok(Some(value))
}

fn step<'a>(value: Json<'a>, name: &str) -> Result<Option<Json<'a>>, JsonStringError> {
    match value {
        Json::Object(members) => {
            let mut named = members.into_iter().filter(|(found, _)| found == name);
            let first = named.next();
            if named.next().is_some() {
                return Err(JsonStringError::Repeated);
            }
            Ok(first.map(|(_, value)| value))
        }
        Json::Array(items) => Ok(index(name).and_then(|index| items.into_iter().nth(index))),
        _ => Ok(None),
    }
}

/// An array index: digits without a leading zero, as in RFC 6901.
pub(crate) fn index(name: &str) -> Option<usize> {
    let plain = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    plain.then(|| name.parse().ok()).flatten()
}
