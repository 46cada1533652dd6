//! Canonical forms of equivalent requests: path, query, forms, multipart.
//!
//! Only spellings that are certainly equivalent become equal. Input that cannot be parsed stays as it was sent.

pub(crate) mod form;
pub(crate) mod header;
pub(crate) mod multipart;
mod query;

use std::borrow::Cow;

pub(crate) use query::query;

/// The path with canonical percent-encoding. Slashes and dots are unchanged: they may be significant to the origin.
pub(crate) fn path(raw: &str) -> Cow<'_, str> {
    percent(raw)
}

/// Decodes unreserved characters and encodes all others in upper case (RFC 3986, 6.2.2).
///
/// A text with an invalid `%` is unchanged: decoding the part after it could form a new escape with another meaning.
fn percent(raw: &str) -> Cow<'_, str> {
    let Some((before, mut rest)) = raw.split_once('%') else {
        return Cow::Borrowed(raw);
    };
    let mut text = String::with_capacity(raw.len());
    text.push_str(before);
    loop {
        let Some(byte) = hex_pair(rest.as_bytes()) else {
            return Cow::Borrowed(raw);
        };
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(byte.into());
        } else {
            text.push('%');
            text.extend(rest[..2].chars().map(|digit| digit.to_ascii_uppercase()));
        }
        rest = &rest[2..];
        let Some((plain, after)) = rest.split_once('%') else {
            text.push_str(rest);
            return Cow::Owned(text);
        };
        text.push_str(plain);
        rest = after;
    }
}

/// The byte encoded by the first two characters.
fn hex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

#[cfg(test)]
mod tests;
