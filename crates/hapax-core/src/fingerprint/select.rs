//! [`Select`]: which values of a JSON document count, named by [`Pointer`]s (F-06).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::canonical;
use crate::json::Json;

/// Which values of a JSON document count. By default all do.
///
/// An excluded member is as good as absent. An excluded item of an array counts as `null`, so that the others keep
/// their places.
///
/// ```
/// use hapax_core::{Fingerprint, Select};
///
/// let select = Select { exclude: ["/sent_at".parse()?].into(), ..Select::default() };
/// let of = |body: &[u8]| Fingerprint::builder().json_selected("body", body, &select).build();
/// assert_eq!(of(br#"{"amount": 5, "sent_at": "10:01"}"#), of(br#"{"amount": 5, "sent_at": "10:02"}"#));
/// assert_ne!(of(br#"{"amount": 5, "sent_at": "10:01"}"#), of(br#"{"amount": 6, "sent_at": "10:01"}"#));
/// # Ok::<(), hapax_core::PointerError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Select {
    /// When not empty, only these values count.
    pub include: BTreeSet<Pointer>,
    /// These never count, also inside of included ones.
    pub exclude: BTreeSet<Pointer>,
}

impl Select {
    /// Takes what is excluded out of the document.
    pub(super) fn prune(&self, document: &mut Json<'_>) {
        for pointer in &self.exclude {
            pointer.remove_from(document);
        }
    }

    /// Appends the included values, each after its pointer.
    pub(super) fn print_included(&self, text: &mut String, document: &mut Json<'_>) {
        for pointer in &self.include {
            if let Some(value) = at(document, pointer.tokens()) {
                canonical::print_string(text, &pointer.0);
                text.push(':');
                canonical::print(text, value);
                text.push(',');
            }
        }
    }
}

/// A JSON pointer (RFC 6901): `/items/0/price`. The empty one is the whole document.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pointer(Box<str>);

impl Pointer {
    /// The pointer as it was written; there is only one way to write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn tokens(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.split('/').skip(1).map(unescaped)
    }

    fn remove_from(&self, document: &mut Json<'_>) {
        let Some((parent, last)) = self.0.rsplit_once('/') else {
            *document = Json::Null;
            return;
        };
        let last = unescaped(last);
        match at(document, parent.split('/').skip(1).map(unescaped)) {
            Some(Json::Object(members)) => members.retain(|(name, _)| *name != last),
            Some(parent) => {
                if let Some(item) = child(parent, &last) {
                    *item = Json::Null;
                }
            }
            None => {}
        }
    }
}

/// The value that is found by going down these names and numbers.
fn at<'j, 'a, 't>(
    document: &'j mut Json<'a>,
    mut tokens: impl Iterator<Item = Cow<'t, str>>,
) -> Option<&'j mut Json<'a>> {
    tokens.try_fold(document, |value, token| child(value, &token))
}

fn child<'j, 'a>(value: &'j mut Json<'a>, token: &str) -> Option<&'j mut Json<'a>> {
    match value {
        Json::Object(members) => members.iter_mut().find(|(name, _)| name == token).map(|(_, value)| value),
        Json::Array(items) => items.get_mut(index(token)?),
        _ => None,
    }
}

/// A number without leading zeros. `-`, the item after the last, is none: it never has a value.
fn index(token: &str) -> Option<usize> {
    let plain =
        token.bytes().all(|digit| digit.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    plain.then(|| token.parse().ok()).flatten()
}

fn unescaped(token: &str) -> Cow<'_, str> {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~").into() } else { token.into() }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        if !text.is_empty() && !text.starts_with('/') {
            return Err(PointerError::Start);
        }
        let stray = |at: &usize| !matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1'));
        match text.match_indices('~').map(|(at, _)| at).find(stray) {
            Some(at) => Err(PointerError::Escape { at }),
            None => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no JSON pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PointerError {
    /// It begins with something other than `/`.
    Start,
    /// A `~` that is neither `~0` nor `~1`.
    Escape {
        /// Where, in bytes from zero.
        at: usize,
    },
}

impl fmt::Display for PointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("a JSON pointer begins with /; write /name for a member"),
            Self::Escape { at } => {
                write!(f, "the ~ at position {at} escapes nothing; write ~0 for ~ and ~1 for /")
            }
        }
    }
}

impl std::error::Error for PointerError {}
