//! Canonical JSON: members in RFC 8785's order, no whitespace, minimal escapes. Numbers stay as written, unlike in that
//! RFC: converted to floats, different amounts become equal.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::fmt::Write as _;

use crate::json::{self, Json, JsonStyle, Member, Number};

/// Parses a text and sorts all members; `None` when the text has no unambiguous meaning.
pub(super) fn read(bytes: &[u8]) -> Option<Json<'_>> {
    let mut value = json::parse(bytes).ok()?;
    value.objects_all(&mut sort).then_some(value)
}

/// Appends the canonical text of a value that was [`read`] here.
pub(super) fn print(text: &mut String, value: &Json<'_>) {
    let Ok(()) = json::print::<CanonicalStyle>(text, value);
}

/// Appends a string in canonical form.
pub(super) fn print_string(text: &mut String, content: &str) {
    CanonicalStyle::string(text, content);
}

/// Sorts by UTF-16 code units; false when two names are equal, because parsers disagree on which of them counts.
fn sort(members: &mut Vec<Member<'_>>) -> bool {
    members.sort_unstable_by(|(a, _), (b, _)| compare_names(a, b));
    members.windows(2).all(|pair| pair[0].0 != pair[1].0)
}

/// Compares by UTF-16 code units.
pub(super) fn compare_names(a: &str, b: &str) -> Ordering {
    // The orders of UTF-8 and UTF-16 differ in one case: characters beyond U+FFFF, whose first byte is at least 0xf0, sort
    // before those from U+E000 on, whose first byte is 0xee or 0xef.
    let rank = |byte: u8| if matches!(byte, 0xee | 0xef) { u8::MAX } else { byte };
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        Some((a, b)) => rank(a).cmp(&rank(b)).then(a.cmp(&b)),
        None => a.len().cmp(&b.len()),
    }
}

struct CanonicalStyle;

impl JsonStyle for CanonicalStyle {
    type Error = Infallible;
    const COMMA: &'static str = ",";
    const COLON: &'static str = ":";

    /// Escapes only what JSON requires.
    fn string(text: &mut String, content: &str) {
        text.push('"');
        let mut rest = content;
        while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
            text.push_str(&rest[..at]);
            match rest.as_bytes()[at] {
                byte @ (b'"' | b'\\') => text.extend(['\\', byte.into()]),
                control => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\\u{control:04x}");
                }
            }
            rest = &rest[at + 1..];
        }
        text.push_str(rest);
        text.push('"');
    }

    fn number(text: &mut String, number: &Number<'_>) -> Result<(), Infallible> {
        text.push_str(number.text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn f_05_names_are_in_the_order_of_their_utf_16(
            a in "[a\u{7f}\u{80}\u{d7ff}\u{e000}\u{f000}\u{ffff}\u{10000}\u{10ffff}]{0,3}",
            b in "[a\u{7f}\u{80}\u{d7ff}\u{e000}\u{f000}\u{ffff}\u{10000}\u{10ffff}]{0,3}",
        ) {
            prop_assert_eq!(compare_names(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }
    }
}
