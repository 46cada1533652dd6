//! One spelling for all JSON texts that say the same: members in RFC 8785's order, no whitespace, strings escaped
//! one way. Numbers stay as written, unlike in that RFC: through a float, different amounts become equal.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::json::{self, Json};

/// The canonical text; `None` when there is none that is sure to mean the same.
pub(super) fn json(bytes: &[u8]) -> Option<String> {
    let value = json::parse(bytes).ok()?;
    let mut text = String::with_capacity(bytes.len());
    print(&mut text, value)?;
    Some(text)
}

/// Recurses as deep as the reader did. `None` at a duplicate name.
fn print(text: &mut String, value: Json<'_>) -> Option<()> {
    match value {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(if value { "true" } else { "false" }),
        Json::Number(number) => text.push_str(number.text),
        Json::String(content) => print_string(text, &content),
        Json::Array(items) => {
            text.push('[');
            let mut separator = "";
            for item in items {
                text.push_str(separator);
                print(text, item)?;
                separator = ",";
            }
            text.push(']');
        }
        Json::Object(members) => {
            text.push('{');
            let mut separator = "";
            for (name, value) in sorted(members)? {
                text.push_str(separator);
                print_string(text, &name);
                text.push(':');
                print(text, value)?;
                separator = ",";
            }
            text.push('}');
        }
    }
    Some(())
}

type Member<'a> = (Cow<'a, str>, Json<'a>);

/// By UTF-16 code units; `None` when two names are equal, because readers disagree on which of them counts.
fn sorted(mut members: Vec<Member<'_>>) -> Option<Vec<Member<'_>>> {
    members.sort_unstable_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    let unique = members.windows(2).all(|pair| pair[0].0 != pair[1].0);
    unique.then_some(members)
}

/// Escapes what JSON must have escaped, and nothing else.
fn print_string(text: &mut String, content: &str) {
    text.push('"');
    for character in content.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\0'..='\u{1f}' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}
