//! The key's header: every value is a key or an error, and a key is the same in every spelling.

#![no_main]

use hapax_core::key::{KEY_LENGTH_MAX, KeyFormat, KeyRules};
use hapax_core::{Key, KeyError};
use libfuzzer_sys::fuzz_target;

// A line feed separates header lines: it cannot be part of a value.
fuzz_target!(|input: &[u8]| {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    match lines[..] {
        [line] => one_line(line),
        _ => {
            assert_eq!(KeyRules::new().parse(lines.clone()), Err(KeyError::ManyLines { lines: lines.len() }))
        }
    }
});

fn one_line(line: &[u8]) {
    let parsed = Key::parse(line);
    assert_eq!(
        KeyRules::new().parse([line]),
        parsed.clone().map(Some),
        "the default rules have no further requirements"
    );

    let is_quoted = line.trim_ascii_start().starts_with(b"\"");
    if is_quoted {
        agrees_with_another_parser(line, &parsed);
    }
    let Ok(key) = parsed else { return };
    assert_eq!(KeyRules::new().strict().parse([line]).is_ok(), is_quoted);
    is_one_key_in_every_spelling(&key);
    answers_for_its_format(&key);
}

/// An independent parser of structured fields must agree on every quoted value.
fn agrees_with_another_parser(line: &[u8], parsed: &Result<Key, KeyError>) {
    let item = sfv::Parser::new(line).parse::<sfv::Item>().ok();
    let content = item.and_then(|item| Some(item.bare_item.as_string()?.as_str().to_owned()));
    match parsed {
        Ok(key) => assert_eq!(content.as_deref(), Some(key.as_str())),
        Err(KeyError::Empty | KeyError::OnlySpaces | KeyError::TooLong { .. }) => {
            assert!(content.is_none_or(|text| text.trim().is_empty() || text.len() > KEY_LENGTH_MAX));
        }
        Err(error) => assert_eq!(content, None, "{error:?}"),
    }
}

fn is_one_key_in_every_spelling(key: &Key) {
    let content = key.as_str();
    assert_eq!(Key::new(content).as_ref(), Ok(key));
    let escaped = content.replace('\\', "\\\\").replace('"', "\\\"");
    let quoted = format!(" \"{escaped}\";a=1 ");
    assert_eq!(Key::parse(quoted.as_bytes()).as_ref(), Ok(key));
    let needs_quotes = content.contains([' ', '"', ',', ';', '\\']);
    assert_eq!(Key::parse(content.as_bytes()).is_ok_and(|bare| bare == *key), !needs_quotes);
}

fn answers_for_its_format(key: &Key) {
    let admitted = |format| KeyRules::new().format(format).admit(key.clone()).ok();
    let of_its_time = admitted(KeyFormat::UuidV7).or(admitted(KeyFormat::Ulid));
    // Only the format distinguishes a UUID without hyphens from other digits.
    let is_itself = of_its_time.as_ref() == Some(key);
    assert_eq!(key.made_at().is_some(), is_itself);
    assert!(of_its_time.is_none_or(|key| key.made_at().is_some()));
    assert!(admitted(KeyFormat::Uuid).is_some() || admitted(KeyFormat::UuidV7).is_none());
}
