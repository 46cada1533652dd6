//! Forms (`application/x-www-form-urlencoded`) as their decoded pairs (F-07).

use std::borrow::Cow;

use hapax_core::FingerprintBuilder;

use super::hex_pair;

/// A name and its value, decoded.
pub(crate) type Pair<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The maximum number of pairs: as many as common servers read. The body of a longer form counts as sent.
pub(crate) const PAIRS_MAX: usize = 1000;

/// The form's pairs, ordered by name, in the order sent within one name; `None` if there are too many or an encoding is
/// invalid.
pub(crate) fn pairs(body: &[u8]) -> Option<Vec<Pair<'_>>> {
    let mut pairs = Vec::new();
    for pair in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == PAIRS_MAX {
            return None;
        }
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let value = pair.get(equals + 1..).unwrap_or_default();
        pairs.push((decoded(&pair[..equals])?, decoded(value)?));
    }
    pairs.sort_by(|(a, _), (b, _)| list_name(a).cmp(list_name(b)));
    Some(pairs)
}

/// The name before `[]`: in `item[][a]` and `item[][b]` the order decides which values belong together.
fn list_name(name: &[u8]) -> &[u8] {
    let end = name.windows(2).position(|two| two == b"[]").unwrap_or(name.len());
    &name[..end]
}

fn decoded(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !text.iter().any(|byte| matches!(byte, b'+' | b'%')) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                bytes.push(hex_pair(rest)?);
                rest = &rest[2..];
            }
            plain => bytes.push(*plain),
        }
    }
    Some(Cow::Owned(bytes))
}

/// Adds the pairs to the fingerprint.
pub(crate) fn add(builder: FingerprintBuilder, pairs: &[Pair<'_>]) -> FingerprintBuilder {
    pairs.iter().fold(builder, |builder, (name, value)| builder.part("name", name).part("value", value))
}
