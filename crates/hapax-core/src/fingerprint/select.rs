//! [`Select`]: the values of a JSON document that count, by [`JsonPointer`] (F-06).

use std::collections::BTreeSet;

use super::canonical;
use crate::json::{Json, JsonPointer, index};

/// The values of a JSON document that count; by default all.
///
/// An excluded member counts as absent. An excluded item of an array counts as `null`, so that the others keep their
/// index.
///
/// ```
/// use hapax_core::{Fingerprint, Select};
///
/// let select = Select::default().exclude(["/sent_at".parse()?]);
/// let of = |body: &[u8]| Fingerprint::builder().json_selected("body", body, &select).build();
/// assert_eq!(of(br#"{"amount": 5, "sent_at": "10:01"}"#), of(br#"{"amount": 5, "sent_at": "10:02"}"#));
/// assert_ne!(of(br#"{"amount": 5, "sent_at": "10:01"}"#), of(br#"{"amount": 6, "sent_at": "10:01"}"#));
/// # Ok::<(), hapax_core::JsonPointerError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Select {
    /// When not empty, only these values count.
    pub include: BTreeSet<JsonPointer>,
    /// These never count, even inside included values.
    pub exclude: BTreeSet<JsonPointer>,
}

impl Select {
    /// Adds values to [`include`](Self::include).
    #[must_use]
    pub fn include(mut self, pointers: impl IntoIterator<Item = JsonPointer>) -> Self {
        self.include.extend(pointers);
        self
    }

    /// Adds values to [`exclude`](Self::exclude).
    #[must_use]
    pub fn exclude(mut self, pointers: impl IntoIterator<Item = JsonPointer>) -> Self {
        self.exclude.extend(pointers);
        self
    }

    /// Removes the excluded values from the document.
    pub(super) fn prune(&self, document: &mut Json<'_>) {
        for pointer in &self.exclude {
            remove(pointer, document);
        }
    }

    /// Appends the included values, each preceded by its pointer.
    pub(super) fn print_included(&self, text: &mut String, document: &mut Json<'_>) {
        for pointer in &self.include {
            if let Some(value) = at(document, pointer.names()) {
                canonical::print_string(text, pointer.as_str());
                text.push(':');
                canonical::print(text, value);
                text.push(',');
            }
        }
    }
}

/// Removes the value at the pointer from the document.
fn remove(pointer: &JsonPointer, document: &mut Json<'_>) {
    let Some((last, parents)) = pointer.names().split_last() else {
        *document = Json::Null;
        return;
    };
    match at(document, parents) {
        Some(Json::Object(members)) => members.retain(|(name, _)| name != &**last),
        Some(parent) => {
            if let Some(item) = child(parent, last) {
                *item = Json::Null;
            }
        }
        None => {}
    }
}

/// The value at the path of these names and indexes.
fn at<'j, 'a>(document: &'j mut Json<'a>, names: &[Box<str>]) -> Option<&'j mut Json<'a>> {
    names.iter().try_fold(document, |value, name| child(value, name))
}

fn child<'j, 'a>(value: &'j mut Json<'a>, token: &str) -> Option<&'j mut Json<'a>> {
    match value {
        Json::Object(members) => members.iter_mut().find(|(name, _)| name == token).map(|(_, value)| value),
        Json::Array(items) => items.get_mut(index(token)?),
        _ => None,
    }
}
