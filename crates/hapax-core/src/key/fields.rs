//! [`KeyFields`]: keys derived from the content of an operation, for callers that send none.

use std::fmt;

use serde::Serialize;

use super::Key;
use crate::json::{JsonPointer, JsonPointerError, JsonStringError, json_text_at};

/// The fields of an operation's content that together name it.
///
/// The key is the same in every process for the same values. It contains neither a time nor anything random: two
/// operations with equal fields are one operation for as long as the record of the first is kept.
///
/// ```
/// use hapax_core::key::KeyFields;
///
/// let fields = KeyFields::new(["/order_id", "/amount"])?;
/// let order = serde_json::json!({ "order_id": "o-1", "amount": 12, "note": "at the door" });
/// let again = serde_json::json!({ "amount": 12, "order_id": "o-1", "note": "ring twice" });
/// assert_eq!(fields.key_of(&order)?, fields.key_of(&again)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFields(Vec<JsonPointer>);

/// Why content has no derived key. It shows no value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyFieldsError {
    /// The content cannot be written as JSON.
    Content {
        /// What the serializer reports.
        why: String,
    },
    /// There are no fields, so all content would have one key.
    NoFields,
    /// A field is missing or `null`.
    Missing(JsonPointer),
    /// A field cannot be read, or it is an array or an object.
    Field {
        /// The field.
        pointer: JsonPointer,
        /// Why it cannot be read.
        error: JsonStringError,
    },
}

impl KeyFields {
    /// The fields at these JSON pointers. Their order counts.
    ///
    /// # Errors
    /// When one of them is not a JSON pointer.
    pub fn new<'a>(pointers: impl IntoIterator<Item = &'a str>) -> Result<Self, JsonPointerError> {
        pointers.into_iter().map(str::parse).collect::<Result<_, _>>().map(Self)
    }

    /// The fields at these JSON pointers. Their order counts.
    pub fn at(pointers: impl IntoIterator<Item = JsonPointer>) -> Self {
        Self(pointers.into_iter().collect())
    }

    /// The pointers.
    pub fn pointers(&self) -> &[JsonPointer] {
        &self.0
    }

    /// The key of this content, by its JSON form.
    ///
    /// # Errors
    /// [`KeyFieldsError`] when a field is missing or is neither a string, a number nor a boolean.
    pub fn key_of(&self, content: &(impl Serialize + ?Sized)) -> Result<Key, KeyFieldsError> {
        let json = serde_json::to_vec(content)
            .map_err(|error| KeyFieldsError::Content { why: error.to_string() })?;
        self.key_of_json(&json)
    }

    /// As [`key_of`](Self::key_of), of JSON text. Numbers count as they are written: `12.5` and `12.50` differ.
    ///
    /// # Errors
    /// As [`key_of`](Self::key_of), and when the text is not JSON.
    pub fn key_of_json(&self, json: &[u8]) -> Result<Key, KeyFieldsError> {
        if self.0.is_empty() {
            return Err(KeyFieldsError::NoFields);
        }
        let mut parts = Vec::with_capacity(2 * self.0.len());
        for pointer in &self.0 {
            let value = json_text_at(json, pointer)
                .map_err(|error| KeyFieldsError::Field { pointer: pointer.clone(), error })?;
            let value = value.ok_or_else(|| KeyFieldsError::Missing(pointer.clone()))?;
            parts.push(pointer.as_str().to_owned());
            parts.push(value.into_owned());
        }
        Ok(Key::of_parts("hapax derived key 1", parts))
    }
}

impl fmt::Display for KeyFieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Content { why } => write!(f, "the content cannot be written as JSON: {why}"),
            Self::NoFields => f.write_str("no fields are named from which a key can be derived"),
            Self::Missing(pointer) => write!(f, "`{pointer}` is missing, and the key is derived from it"),
            Self::Field { pointer, error } => write!(f, "`{pointer}`: {error}"),
        }
    }
}

impl std::error::Error for KeyFieldsError {}
