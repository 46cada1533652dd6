//! Content-Digest and Repr-Digest: a body that does not match its digest is refused (F-09).
//!
//! Parses the fields of RFC 9530 and no other structured fields.

use http::HeaderName;
use http::header::CONTENT_RANGE;
use sha2::{Digest, Sha256, Sha512};

use super::canonical::header::{Fields, codings, quoted, trimmed};

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// The body does not match its digest, or the digest field is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DigestMismatch;

/// Compares the body with its digests. Without any, it is accepted.
///
/// A representation digest is checked only if the body is the complete, unencoded representation.
pub(crate) fn verify(fields: Fields<'_>, body: &[u8]) -> Result<(), DigestMismatch> {
    if fields.may_have(&CONTENT_DIGEST) {
        verify_field(fields, &CONTENT_DIGEST, body)?;
    }
    let whole = || codings(fields).is_empty() && fields.first(&CONTENT_RANGE).is_none();
    if fields.may_have(&REPR_DIGEST) && whole() {
        verify_field(fields, &REPR_DIGEST, body)?;
    }
    Ok(())
}

/// Digests of unknown or broken algorithms are ignored.
fn verify_field(fields: Fields<'_>, field: &HeaderName, body: &[u8]) -> Result<(), DigestMismatch> {
    let (mut sha_256, mut sha_512) = (None, None);
    for line in fields.lines(field) {
        // Several lines form one dictionary, in which the last of equal names counts.
        for (algorithm, digest) in dictionary(line.as_bytes()).ok_or(DigestMismatch)? {
            match algorithm {
                b"sha-256" => sha_256 = Some(digest),
                b"sha-512" => sha_512 = Some(digest),
                _ => {}
            }
        }
    }
    let is_256 = sha_256.is_none_or(|digest| digest == unpadded_base64(&Sha256::digest(body)));
    let is_512 = sha_512.is_none_or(|digest| digest == unpadded_base64(&Sha512::digest(body)));
    if is_256 && is_512 { Ok(()) } else { Err(DigestMismatch) }
}

/// The names and byte sequences of a dictionary (RFC 9651); the byte sequences in base64 without padding.
fn dictionary(line: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut members = Vec::new();
    let mut rest = trimmed(line);
    while !rest.is_empty() {
        let (name, after) = key(rest)?;
        let (digest, after) = byte_sequence(after.strip_prefix(b"=")?)?;
        members.push((name, digest));
        rest = trimmed(skip_parameters(after)?);
        if !rest.is_empty() {
            rest = trimmed(rest.strip_prefix(b",")?);
            if rest.is_empty() {
                return None;
            }
        }
    }
    Some(members)
}

fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let starts = matches!(text.first(), Some(b'a'..=b'z' | b'*'));
    let more = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*');
    starts.then(|| split_while(text, more))
}

/// `:…:` without the padding, which senders may omit.
fn byte_sequence(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (base64, after) = split_while(text.strip_prefix(b":")?, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
    });
    let (padding, after) = split_while(after, |byte| *byte == b'=');
    let after = after.strip_prefix(b":")?;
    (padding.len() <= 2).then_some((base64, after))
}

/// The rest after the parameters, which do not matter for a digest.
fn skip_parameters(mut text: &[u8]) -> Option<&[u8]> {
    while let Some(after) = text.strip_prefix(b";") {
        let (_, after) = split_while(after, |byte| *byte == b' ');
        (_, text) = key(after)?;
        if let Some(value) = text.strip_prefix(b"=") {
            text = skip_bare_item(value)?;
        }
    }
    Some(text)
}

fn skip_bare_item(text: &[u8]) -> Option<&[u8]> {
    if text.starts_with(b"\"") {
        return quoted(text).map(|(_, after)| after);
    }
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';');
    let (item, after) = split_while(text, plain);
    (!item.is_empty()).then_some(after)
}

fn split_while(text: &[u8], wanted: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !wanted(byte)).unwrap_or(text.len()))
}

fn unpadded_base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(bytes.len() * 4 / 3 + 1);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().chain(&[0; 2]).take(3).fold(0, |group, byte| group << 8 | usize::from(*byte));
        // One digit for every six bits of the chunk, rounded up.
        text.extend((0..=chunk.len()).map(|at| DIGITS[group >> (18 - 6 * at) & 0x3f]));
    }
    text
}

#[cfg(test)]
mod tests;
