//! Header values: what surrounds them, their parameters, and lists of names.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// A name in lower case, and what it stands for.
pub(crate) type Named<'a> = (Cow<'a, [u8]>, &'a [u8]);

/// The value without the spaces and tabs around it.
pub(crate) fn trimmed(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = value.iter().position(|byte| !blank(byte)) else {
        return &[];
    };
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

/// In lower case, as names and types are compared.
pub(crate) fn lower(value: &[u8]) -> Cow<'_, [u8]> {
    if value.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(value.to_ascii_lowercase())
    } else {
        Cow::Borrowed(value)
    }
}

/// What stands before the parameters, in lower case: `text/html` of `Text/HTML; charset=utf-8`.
pub(crate) fn essence(value: &[u8]) -> Cow<'_, [u8]> {
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    lower(trimmed(&value[..end]))
}

/// The parameters after the first `;`: names in lower case, values without their quotes but with their escapes.
/// `None` when they cannot be told apart.
pub(crate) fn parameters(value: &[u8]) -> Option<Vec<Named<'_>>> {
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

/// The value at the start, and what follows it.
fn parameter_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.starts_with(b"\"") {
        return quoted(text);
    }
    let end = text.iter().position(|byte| *byte == b';').unwrap_or(text.len());
    let (value, after) = text.split_at(end);
    (!value.contains(&b'"')).then_some((trimmed(value), after))
}

/// What stands in the quotes that the text begins with, escapes as they are, and what follows them.
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

/// The codings on a body, in lower case and in the order they were applied; `identity` is none.
pub(crate) fn codings(headers: &HeaderMap) -> Vec<Cow<'_, [u8]>> {
    let lines = headers.get_all(CONTENT_ENCODING).iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    names
        .map(|name| match lower(trimmed(name)) {
            // RFC 9110, 8.4.1.3: an old name of the same.
            name if *name == *b"x-gzip" => Cow::Borrowed(&b"gzip"[..]),
            name => name,
        })
        .filter(|name| !name.is_empty() && **name != *b"identity")
        .collect()
}
