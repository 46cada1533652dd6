//! Parses fuzz inputs as HTTP messages: a first line, fields, an empty line and a body, separated by line feeds.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;

/// The input as a request; `None` when the crate `http` refuses it.
pub fn request(input: &[u8]) -> Option<(Parts, Bytes)> {
    let (first, headers, body) = message(input)?;
    let (method, uri) = std::str::from_utf8(first).ok()?.split_once(' ')?;
    let mut request = http::Request::builder().method(method).uri(uri).body(()).ok()?;
    *request.headers_mut() = headers;
    Some((request.into_parts().0, body))
}

/// First line, fields and body.
pub fn message(input: &[u8]) -> Option<(&[u8], HeaderMap, Bytes)> {
    let (first, mut rest) = line(input)?;
    let mut headers = HeaderMap::new();
    loop {
        let (field, after) = line(rest)?;
        rest = after;
        if field.is_empty() {
            return Some((first, headers, Bytes::copy_from_slice(rest)));
        }
        let colon = field.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&field[..colon]).ok()?;
        let value = HeaderValue::from_bytes(field[colon + 1..].trim_ascii()).ok()?;
        headers.try_append(name, value).ok()?;
    }
}

fn line(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    Some((&input[..end], &input[end + 1..]))
}
