//! One value out of a JSON text, by a JSON pointer (RFC 6901).
//!
//! It says what stands at a place and refuses to guess: where a name on the way is there twice, readers disagree on
//! which of them counts, and there is no answer. What the string means is for its users to know.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Json, JsonError, parse};

/// A place in a JSON text, as RFC 6901 spells it: `/order/id`, `/items/0`. The empty pointer is the whole text.
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
    /// The pointer to a member of the outermost object, whatever characters its name has.
    pub fn member(name: &str) -> Self {
        let text = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        Self { text: text.into(), names: Arc::new([name.into()]) }
    }

    /// The pointer as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names on the way, outermost first, with nothing escaped.
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

/// Why a text is no JSON pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonPointerError {
    at: usize,
    why: &'static str,
}

impl fmt::Display for JsonPointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the JSON pointer makes no sense at position {}: {}", self.at, self.why)
    }
}

impl std::error::Error for JsonPointerError {}

/// Why there is no telling which string stands at a place. It shows nothing of the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum JsonStringError {
    /// The text is no JSON, or nests deeper than [`JSON_DEPTH_MAX`](crate::JSON_DEPTH_MAX).
    NotJson {
        /// Where it stops making sense.
        at: usize,
        /// What is wrong there.
        why: &'static str,
    },
    /// A name on the way is there more than once.
    Repeated,
    /// There is something else than a string.
    NotString {
        /// What there is.
        found: &'static str,
    },
}

impl fmt::Display for JsonStringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson { at, why } => write!(f, "the text is not JSON at position {at}: {why}"),
            Self::Repeated => f.write_str("a name on the way is there more than once; write it once"),
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

/// The string at `pointer`; `None` when there is nothing, or `null`.
///
/// # Errors
/// [`JsonStringError`] when the text is no JSON, when a name on the way is repeated and when something else than a
/// string is there.
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

/// The same where a number or a boolean is as good as a string: its text, a number as it was written.
///
/// # Errors
/// As [`json_string_at`], and never for a number or a boolean.
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

/// Digits without a leading zero, as RFC 6901 has them.
pub(crate) fn index(name: &str) -> Option<usize> {
    let plain = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    plain.then(|| name.parse().ok()).flatten()
}
