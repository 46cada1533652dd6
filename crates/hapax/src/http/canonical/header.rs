//! Header values: surrounding white space, parameters, and lists of names.

use std::borrow::Cow;
use std::iter::Skip;

use http::header::{CONTENT_ENCODING, ValueIter};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Up to this number of fields, a linear search is faster than a lookup by hash.
const FEW: usize = 12;

/// A name in lower case, and its value.
pub(crate) type NamedValue<'a> = (Cow<'a, [u8]>, &'a [u8]);

/// The fields of a head, with a bit mask of their names. Most of the fields looked up are absent, and the mask rules
/// those out without a lookup.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) map: &'a HeaderMap,
    /// One bit per name that is present. Names may share a bit.
    names: u64,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(map: &'a HeaderMap) -> Self {
        Self { map, names: map.keys().fold(0, |names, name| names | bit(name)) }
    }

    /// Whether the field may be present; false is certain.
    #[inline]
    pub(crate) fn may_have(self, name: &HeaderName) -> bool {
        self.names & bit(name) != 0
    }

    /// The first value of a field.
    #[inline]
    pub(crate) fn first(self, name: &HeaderName) -> Option<&'a HeaderValue> {
        if self.may_have(name) { first(self.map, name) } else { None }
    }

    /// The values of a field, one per line.
    #[inline]
    pub(crate) fn lines(self, name: &HeaderName) -> FieldLines<'a> {
        let first = self.first(name);
        // Most requests repeat no field.
        let repeats = first.is_some() && self.map.len() > self.map.keys_len();
        FieldLines { first, more: repeats.then(|| self.map.get_all(name).into_iter().skip(1)) }
    }
}

/// The factor separates the names that are often sent from those that are often looked up.
#[inline]
fn bit(name: &HeaderName) -> u64 {
    let name = name.as_str().as_bytes();
    let ends =
        name.first().zip(name.last()).map_or(0, |(first, last)| usize::from(*first) + usize::from(*last));
    1 << ((13 * name.len() + ends) % 64)
}

/// The first value of a field.
pub(crate) fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    if headers.len() > FEW {
        return headers.get(name);
    }
    headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
}

pub(crate) struct FieldLines<'a> {
    first: Option<&'a HeaderValue>,
    more: Option<Skip<ValueIter<'a, HeaderValue>>>,
}

impl<'a> Iterator for FieldLines<'a> {
    type Item = &'a HeaderValue;

    fn next(&mut self) -> Option<&'a HeaderValue> {
        self.first.take().or_else(|| self.more.as_mut()?.next())
    }
}

/// The value without surrounding spaces and tabs.
pub(crate) fn trimmed(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = value.iter().position(|byte| !blank(byte)) else {
        return &[];
    };
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

/// The value in lower case, for comparing names and types.
pub(crate) fn lower(value: &[u8]) -> Cow<'_, [u8]> {
    if value.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(value.to_ascii_lowercase())
    } else {
        Cow::Borrowed(value)
    }
}

/// The part before the parameters, in lower case: `text/html` of `Text/HTML; charset=utf-8`.
pub(crate) fn essence(value: &[u8]) -> Cow<'_, [u8]> {
    // Most values need no change.
    if value.iter().fold(true, |all, byte| all & matches!(byte, b'a'..=b'z' | b'/')) {
        return Cow::Borrowed(value);
    }
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    lower(trimmed(&value[..end]))
}

/// Whether a media type, as [`essence`] returns it, is JSON: by its name, by its suffix, or one of AWS's.
pub(crate) fn is_json(essence: &[u8]) -> bool {
    essence == b"application/json"
        || essence.ends_with(b"+json")
        || essence.starts_with(b"application/x-amz-json-")
}

/// The parameters after the first `;`: names in lower case, values without their quotes but with their escapes. `None`
/// if they cannot be separated.
pub(crate) fn parameters(value: &[u8]) -> Option<Vec<NamedValue<'_>>> {
    let mut parameters = Vec::new();
    let start = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    let mut rest = &value[start..];
    while let Some(after) = rest.strip_prefix(b";") {
        rest = trimmed(after);
        if rest.is_empty() || rest.starts_with(b";") {
            continue;
        }
        let equals = rest.iter().position(|byte| matches!(byte, b'=' | b';' | b'"'))?;
        let (name, after) = rest.split_at(equals);
        let (value, after) = parameter_value(trimmed(after.strip_prefix(b"=")?))?;
        parameters.push((lower(trimmed(name)), value));
        rest = trimmed(after);
    }
    rest.is_empty().then_some(parameters)
}

/// The value at the start, and the rest after it.
fn parameter_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.starts_with(b"\"") {
        return quoted(text);
    }
    let end = text.iter().position(|byte| *byte == b';').unwrap_or(text.len());
    let (value, after) = text.split_at(end);
    (!value.contains(&b'"')).then_some((trimmed(value), after))
}

/// The content of the quoted string at the start, with its escapes, and the rest after it.
pub(crate) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"\"")?;
    let mut escaped = false;
    let end = inner.iter().position(|byte| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    })?;
    Some((&inner[..end], &inner[end + 1..]))
}

/// The codings of a body, in lower case and in the order in which they were applied; `identity` is omitted.
pub(crate) fn codings(fields: Fields<'_>) -> Vec<Cow<'_, [u8]>> {
    let names = fields.lines(&CONTENT_ENCODING).flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    names
        .map(|name| match lower(trimmed(name)) {
            // RFC 9110, 8.4.1.3: an equivalent older name.
            name if *name == *b"x-gzip" => Cow::Borrowed(&b"gzip"[..]),
            name => name,
        })
        .filter(|name| !name.is_empty() && **name != *b"identity")
        .collect()
}
