//! One claim of a bearer's JSON Web Token, unverified. If the request or the token is malformed, there is no claim.

use hapax_core::{JsonPointer, json_string_at};
use http::header::{AUTHORIZATION, HeaderMap};

/// The longest `Authorization` that is parsed: servers limit all header fields together to about this size.
const CREDENTIAL_BYTES_MAX: usize = 16 << 10;

/// The string at `claim`. It is not empty and has no control characters.
pub(super) fn claim(headers: &HeaderMap, claim: &JsonPointer) -> Option<String> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return None;
    };
    let (scheme, credential) = line.to_str().ok()?.split_once(' ')?;
    if line.len() > CREDENTIAL_BYTES_MAX || !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut sections = credential.trim().split('.');
    let (Some(_header), Some(payload), Some(_signature), None) =
        (sections.next(), sections.next(), sections.next(), sections.next())
    else {
        return None;
    };
    let payload = base64url(payload)?;
    let content = json_string_at(&payload, claim).ok()??;
    (!content.is_empty() && !content.contains(char::is_control)).then(|| content.into_owned())
}

/// The bytes encoded by this text in base64url without padding (RFC 7515, section 2).
fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for digit in group {
            bits = bits << 6 | sextet(*digit)?;
        }
        let [_, first, second, third] = (bits << (6 * (4 - group.len()))).to_be_bytes();
        let spelled: &[u8] = match (group.len(), second, third) {
            (4, ..) => &[first, second, third],
            (3, _, 0) => &[first, second],
            (2, 0, 0) => &[first],
            // A single digit, or non-zero trailing bits: no encoder produces that.
            _ => return None,
        };
        bytes.extend_from_slice(spelled);
    }
    Some(bytes)
}

fn sextet(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests;
