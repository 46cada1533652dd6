//! [`KeyPlace`]: one place of a request in which a key may be.

use std::fmt;
use std::str::FromStr;

use hapax_core::JsonPointer;
use http::HeaderName;

/// A place of a request in which a key may be, written `header:NAME`, `query:NAME`, `json:/POINTER` or `form:NAME`.
///
/// ```
/// use hapax::http::KeyPlace;
///
/// let place: KeyPlace = "json:/client_token".parse()?;
/// assert_eq!(place.to_string(), "json:/client_token");
/// # Ok::<(), hapax::http::KeyPlaceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyPlace {
    /// A header.
    Header(HeaderName),
    /// A parameter of the query, by its decoded name.
    Query(String),
    /// A value of a JSON body.
    Json(JsonPointer),
    /// A field of a form (`application/x-www-form-urlencoded`), by its decoded name.
    Form(String),
}

/// The text is not a [`KeyPlace`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text:?} is not a place of keys; write `header:NAME`, `query:NAME`, `json:/POINTER` or `form:NAME`")]
pub struct KeyPlaceError {
    text: String,
}

impl KeyPlace {
    /// The place in the words of a message for the sender of a request.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Header(name) => format!("`{name}`"),
            Self::Query(name) => format!("`{name}` in the query"),
            Self::Json(pointer) => format!("`{pointer}` in the body"),
            Self::Form(name) => format!("`{name}` in the form"),
        }
    }
}

impl FromStr for KeyPlace {
    type Err = KeyPlaceError;

    fn from_str(text: &str) -> Result<Self, KeyPlaceError> {
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        let place = match text.split_once(':') {
            Some(("header", name)) => name.parse().ok().map(Self::Header),
            Some(("query", name)) => named(name).map(Self::Query),
            Some(("json", pointer)) => pointer.parse().ok().map(Self::Json),
            Some(("form", name)) => named(name).map(Self::Form),
            _ => None,
        };
        place.ok_or_else(|| KeyPlaceError { text: text.to_owned() })
    }
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Json(pointer) => write!(f, "json:{pointer}"),
            Self::Form(name) => write!(f, "form:{name}"),
        }
    }
}
