//! Parses the key's header value: a structured-field string, or bare visible ASCII.
//!
//! A bare value has its own rule and is never parsed as a structured field's number, token or date: a bare UUID starts
//! with a digit more often than not. Parameters after a quoted key must parse and are ignored (K-04).

use std::borrow::Cow;

use super::{KEY_LENGTH_MAX, Key, KeyError, check_printable};

/// Whether the value is quoted, as a structured-field string is.
pub(super) fn is_quoted(value: &[u8]) -> bool {
    value.iter().find(|byte| **byte != b' ') == Some(&b'"')
}

/// The characters that need no escape in a quoted key and no quotes in a bare one.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut visible = b'!';
    while visible <= b'~' {
        plain[visible as usize] = !matches!(visible, b'"' | b',' | b';' | b'\\');
        visible += 1;
    }
    plain
};

pub(super) fn parse(value: &[u8]) -> Result<Key, KeyError> {
    // Fast path: most keys are plain and need one pass.
    let inside = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    match inside {
        Some(content) if is_plain(content) => Ok(Key::of(&text(content))),
        None if is_plain(value) => Ok(Key::of(&text(value))),
        _ => parse_any(value),
    }
}

/// Parses a value that may hold any printable text: by the rules of [`parse`] where they find a key, otherwise the text
/// verbatim, with surrounding spaces trimmed.
pub(super) fn parse_raw(value: &[u8]) -> Result<Key, KeyError> {
    match parse(value) {
        Err(
            KeyError::NeedsQuotes { .. }
            | KeyError::List { .. }
            | KeyError::Unterminated
            | KeyError::Escape { .. }
            | KeyError::Parameter { .. },
        ) => Key::new(text(value.trim_ascii())),
        found => found,
    }
}

fn is_plain(content: &[u8]) -> bool {
    (1..=KEY_LENGTH_MAX).contains(&content.len()) && content.iter().all(|byte| PLAIN[usize::from(*byte)])
}

fn parse_any(value: &[u8]) -> Result<Key, KeyError> {
    check_printable(value)?;
    let mut input = Input { value: without_trailing_spaces(value), at: 0 };
    input.skip_spaces();
    if input.peek() == Some(b'"') { quoted(&mut input) } else { bare(&input) }
}

fn without_trailing_spaces(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &value[..end]
}

fn bare(input: &Input<'_>) -> Result<Key, KeyError> {
    for (at, byte) in input.value.iter().enumerate().skip(input.at) {
        match byte {
            b',' => return Err(KeyError::List { at }),
            b' ' | b'"' | b';' | b'\\' => return Err(KeyError::NeedsQuotes { at }),
            _ => {}
        }
    }
    Key::new(text(&input.value[input.at..]))
}

fn quoted(input: &mut Input<'_>) -> Result<Key, KeyError> {
    let content = string(input)?;
    while input.take(b';') {
        input.skip_spaces();
        parameter(input).ok_or(KeyError::Parameter { at: input.at })?;
    }
    let end = input.at;
    input.skip_spaces();
    match input.peek() {
        None => Key::new(content),
        Some(b',') => Err(KeyError::List { at: input.at }),
        Some(_) => Err(KeyError::Parameter { at: end }),
    }
}

/// Unescapes a quoted string.
fn string<'a>(input: &mut Input<'a>) -> Result<Cow<'a, str>, KeyError> {
    input.next();
    let rest = &input.value[input.at..];
    let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(KeyError::Unterminated)?;
    input.at += plain;
    if input.take(b'"') {
        return Ok(text(&rest[..plain]));
    }
    let mut content = text(&rest[..plain]).into_owned();
    loop {
        match input.next() {
            None => return Err(KeyError::Unterminated),
            Some(b'"') => return Ok(Cow::Owned(content)),
            Some(b'\\') => match input.next() {
                Some(byte @ (b'"' | b'\\')) => content.push(byte.into()),
                Some(_) => return Err(KeyError::Escape { at: input.at - 2 }),
                None => return Err(KeyError::Unterminated),
            },
            Some(byte) => content.push(byte.into()),
        }
    }
}

/// Converts bytes that are known to be ASCII. Other bytes would become U+FFFD, which is refused later.
fn text(ascii: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(ascii).map_or_else(|_| String::from_utf8_lossy(ascii), Cow::Borrowed)
}

/// One parameter of RFC 9651, section 4.2.3.2; `None` when it does not parse.
fn parameter(input: &mut Input<'_>) -> Option<()> {
    input.next_if(|byte| byte.is_ascii_lowercase() || byte == b'*')?;
    input.skip_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte));
    if input.take(b'=') { bare_item(input) } else { Some(()) }
}

/// Any bare item of RFC 9651, section 4.2.3.1.
fn bare_item(input: &mut Input<'_>) -> Option<()> {
    match input.peek()? {
        b'"' => string(input).ok().map(|_| ()),
        b'-' | b'0'..=b'9' => number(input).map(|_| ()),
        b'*' | b'a'..=b'z' | b'A'..=b'Z' => {
            input.skip_while(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte));
            Some(())
        }
        b':' => byte_sequence(input),
        b'?' => {
            input.next();
            input.next_if(|byte| matches!(byte, b'0' | b'1')).map(|_| ())
        }
        b'@' => {
            input.next();
            (number(input)? == Number::Integer).then_some(())
        }
        b'%' => display_string(input),
        _ => None,
    }
}

#[derive(PartialEq, Eq)]
enum Number {
    Integer,
    Decimal,
}

/// At most 15 digits in an integer; in a decimal at most 12 before the point and 1 to 3 after it.
fn number(input: &mut Input<'_>) -> Option<Number> {
    input.take(b'-');
    let whole = input.skip_while(|byte| byte.is_ascii_digit());
    if !input.take(b'.') {
        return (1..=15).contains(&whole).then_some(Number::Integer);
    }
    let fraction = input.skip_while(|byte| byte.is_ascii_digit());
    ((1..=12).contains(&whole) && (1..=3).contains(&fraction)).then_some(Number::Decimal)
}

/// Base 64 between colons; missing or partial padding is accepted, as the RFC requires of parsers.
fn byte_sequence(input: &mut Input<'_>) -> Option<()> {
    input.next();
    let digits = input.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    let padding = input.skip_while(|byte| byte == b'=');
    let complete = digits % 4 != 1 && padding <= digits.next_multiple_of(4) - digits;
    (input.take(b':') && complete).then_some(())
}

/// Percent-encoded UTF-8 between quotes, hexadecimal digits in lower case.
fn display_string(input: &mut Input<'_>) -> Option<()> {
    input.next();
    input.next_if(|byte| byte == b'"')?;
    let mut content = Vec::new();
    loop {
        match input.next()? {
            b'"' => return std::str::from_utf8(&content).ok().map(|_| ()),
            b'%' => {
                let high = input.next_if(is_lower_hex)?;
                let low = input.next_if(is_lower_hex)?;
                content.push((hex_value(high) << 4) | hex_value(low));
            }
            byte => content.push(byte),
        }
    }
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn hex_value(digit: u8) -> u8 {
    if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
}

struct Input<'a> {
    value: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn peek(&self) -> Option<u8> {
        self.value.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        self.next_if(|_| true)
    }

    fn next_if(&mut self, wanted: impl Fn(u8) -> bool) -> Option<u8> {
        let byte = self.peek().filter(|byte| wanted(*byte))?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, wanted: u8) -> bool {
        self.next_if(|byte| byte == wanted).is_some()
    }

    /// Returns the number of skipped bytes.
    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.next_if(&wanted).is_some() {}
        self.at - start
    }

    fn skip_spaces(&mut self) {
        self.skip_while(|byte| byte == b' ');
    }
}
