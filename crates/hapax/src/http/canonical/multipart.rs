//! Multipart bodies part by part, independent of their boundary (F-07).
//!
//! Accepts what RFC 2046 requires of senders. A body of any other form, including one with text before the first or
//! after the last part, has no parts and counts as sent.

use hapax_core::FingerprintBuilder;

use super::header::{NamedValue, essence, lower, parameters, trimmed};

/// The prefix of content types with parts.
pub(crate) const TYPE: &[u8] = b"multipart/";

/// The maximum number of parts of one body, including nested ones. Forms written by hand have tens, batches hundreds.
pub(crate) const PARTS_MAX: usize = 1000;

/// The maximum number of headers of one part: three or four are usual.
const HEADERS_MAX: usize = 32;

/// The maximum depth of nested parts: a form's list of files is at the second level.
const DEPTH_MAX: usize = 3;

/// The maximum length of a boundary in RFC 2046.
const BOUNDARY_LENGTH_MAX: usize = 70;

/// One part: its headers ordered by name, and its content.
pub(crate) struct Part<'a> {
    headers: Vec<NamedValue<'a>>,
    content: PartContent<'a>,
}

enum PartContent<'a> {
    Bytes(&'a [u8]),
    Parts(Vec<Part<'a>>),
}

/// The parts of a body of this content type; `None` if it cannot be split into parts, or has too many.
pub(crate) fn parts<'a>(content_type: &[u8], body: &'a [u8]) -> Option<Vec<Part<'a>>> {
    PartReader { parts_left: PARTS_MAX, depth: 0 }.parts(content_type, body)
}

struct PartReader {
    parts_left: usize,
    depth: usize,
}

impl PartReader {
    /// Recurses at most [`DEPTH_MAX`] times.
    fn parts<'a>(&mut self, content_type: &[u8], body: &'a [u8]) -> Option<Vec<Part<'a>>> {
        let delimiter = [b"\r\n--", boundary(content_type)?].concat();
        let mut rest = body.strip_prefix(&delimiter[2..]).or_else(|| body.strip_prefix(&*delimiter))?;
        let mut parts = Vec::new();
        loop {
            if let Some(after) = rest.strip_prefix(b"--") {
                return matches!(trimmed(after), b"" | b"\r\n").then_some(parts);
            }
            let padding = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
            rest = rest[padding..].strip_prefix(b"\r\n")?;
            let end = find(rest, &delimiter)?;
            self.parts_left = self.parts_left.checked_sub(1)?;
            parts.push(self.part(&rest[..end])?);
            rest = &rest[end + delimiter.len()..];
        }
    }

    fn part<'a>(&mut self, text: &'a [u8]) -> Option<Part<'a>> {
        let (headers, bytes) = headers(text)?;
        let mut content_types = headers.iter().filter(|(name, _)| **name == *b"content-type");
        let content_type = content_types.next().filter(|_| content_types.next().is_none());
        let nested =
            content_type.filter(|(_, value)| essence(value).starts_with(TYPE) && self.depth + 1 < DEPTH_MAX);
        let parts = nested.and_then(|(_, value)| {
            self.depth += 1;
            let parts = self.parts(value, bytes);
            self.depth -= 1;
            parts
        });
        Some(Part { headers, content: parts.map_or(PartContent::Bytes(bytes), PartContent::Parts) })
    }
}

fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    let (_, boundary) = parameters(content_type)?.into_iter().find(|(name, _)| **name == *b"boundary")?;
    let usable = (1..=BOUNDARY_LENGTH_MAX).contains(&boundary.len()) && !boundary.contains(&b'\\');
    usable.then_some(boundary)
}

/// The headers of a part and the rest after them. A part may have neither.
fn headers(text: &[u8]) -> Option<(Vec<NamedValue<'_>>, &[u8])> {
    let mut headers: Vec<NamedValue<'_>> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = find(rest, b"\r\n")?;
        let line = &rest[..end];
        rest = &rest[end + 2..];
        if line.is_empty() {
            headers.sort_by(|(a, _), (b, _)| a.cmp(b));
            return Some((headers, rest));
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if headers.len() == HEADERS_MAX || name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        headers.push((lower(name), trimmed(value)));
    }
    headers.is_empty().then_some((headers, rest))
}

/// The position of the first `wanted`, which begins with a carriage return.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut returns = (0..text.len()).filter(|at| text[*at] == b'\r');
    returns.find(|at| text[*at..].starts_with(wanted))
}

/// Adds the parts, in their order, and the parameters of the content type that describe them, such as the root part.
pub(crate) fn add(
    builder: FingerprintBuilder,
    content_type: &[u8],
    parts: &[Part<'_>],
) -> FingerprintBuilder {
    let parameters = parameters(content_type).unwrap_or_default();
    add_parts(add_parameters(builder, parameters, &[b"boundary", b"charset"]), parts)
}

fn add_parts(mut builder: FingerprintBuilder, parts: &[Part<'_>]) -> FingerprintBuilder {
    // The number of parts comes first, so that nested parts cannot be confused with outer ones.
    builder = builder.part("parts", &(parts.len() as u64).to_be_bytes());
    for part in parts {
        for (name, value) in &part.headers {
            builder = add_header(builder.part("header", name), name, value, &part.content);
        }
        builder = match &part.content {
            PartContent::Bytes(bytes) => builder.part("content", bytes),
            PartContent::Parts(parts) => add_parts(builder, parts),
        };
    }
    builder
}

/// In the headers that every part has, quoting and the order of parameters do not count; in others every byte does.
fn add_header(
    builder: FingerprintBuilder,
    name: &[u8],
    value: &[u8],
    content: &PartContent<'_>,
) -> FingerprintBuilder {
    let structured = matches!(name, b"content-disposition" | b"content-type");
    let Some(parameters) = structured.then(|| parameters(value)).flatten() else {
        return builder.part("value", value);
    };
    let left_out: &[&[u8]] = if matches!(content, PartContent::Parts(_)) { &[b"boundary"] } else { &[] };
    add_parameters(builder.part("essence", &essence(value)), parameters, left_out)
}

fn add_parameters(
    builder: FingerprintBuilder,
    mut parameters: Vec<NamedValue<'_>>,
    left_out: &[&[u8]],
) -> FingerprintBuilder {
    parameters.retain(|(name, _)| !left_out.contains(&&**name));
    parameters.sort_by(|(a, _), (b, _)| a.cmp(b));
    parameters
        .iter()
        .fold(builder, |builder, (name, value)| builder.part("parameter", name).part("value", value))
}

#[cfg(test)]
mod tests;
