//! A lossless JSON parser: numbers stay as written, members keep their order and their duplicates.
//!
//! Strict RFC 8259 in one pass, with a nesting [limit](DEPTH_MAX). Its users decide how to treat duplicate names and how
//! to print values.

mod pointer;
mod print;

use std::borrow::Cow;

pub(crate) use pointer::index;
pub use pointer::{JsonPointer, JsonPointerError, JsonStringError, json_string_at, json_text_at};
pub(crate) use print::{JsonStyle, print};

/// The nesting limit of arrays and objects: that of `serde_json`, far from overflowing any stack.
pub const DEPTH_MAX: usize = 128;

pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<Member<'a>>),
}

pub(crate) type Member<'a> = (Cow<'a, str>, Json<'a>);

impl<'a> Json<'a> {
    /// Whether every object satisfies `each`, outer objects first. `each` may change them. Recurses as deep as the parser
    /// did.
    pub(crate) fn objects_all(&mut self, each: &mut impl FnMut(&mut Vec<Member<'a>>) -> bool) -> bool {
        match self {
            Json::Array(items) => items.iter_mut().all(|item| item.objects_all(each)),
            Json::Object(members) => {
                each(members) && members.iter_mut().all(|(_, value)| value.objects_all(each))
            }
            _ => true,
        }
    }
}

/// A number as written, and its position.
pub(crate) struct Number<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

/// A syntax error and its position.
pub(crate) struct JsonError {
    pub(crate) at: usize,
    pub(crate) why: &'static str,
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Json<'_>, JsonError> {
    let mut reader = Reader::new(bytes)?;
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

/// A pull parser over a JSON text.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| JsonError { at: error.valid_up_to(), why: "this is not UTF-8" })?;
        Ok(Self { text, at: 0, depth: 0 })
    }

    /// Refuses anything but trailing whitespace.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        self.skip_whitespace();
        if self.at < self.text.len() { Err(self.error("trailing characters")) } else { Ok(()) }
    }

    /// Recurses at most [`DEPTH_MAX`] times.
    pub(crate) fn value(&mut self) -> Result<Json<'a>, JsonError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Json::Number),
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(_) => Err(self.error("a value was expected")),
            None => Err(self.error("unexpected end of text")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json<'a>, JsonError>) -> Result<Json<'a>, JsonError> {
        self.enter()?;
        let value = read(self)?;
        self.leave();
        Ok(value)
    }

    /// Consumes the opening bracket of an array or an object.
    pub(crate) fn enter(&mut self) -> Result<(), JsonError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error("this nests too deep"));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Ends the innermost array or object.
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Skips whitespace and peeks at the next byte.
    pub(crate) fn peek_token(&mut self) -> Option<u8> {
        self.skip_whitespace();
        self.peek()
    }

    fn array(&mut self) -> Result<Json<'a>, JsonError> {
        let mut items = Vec::new();
        if self.take_token(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.take_token(b']') {
                return Ok(Json::Array(items));
            }
            self.expect(b',', "a comma or ] was expected")?;
        }
    }

    fn object(&mut self) -> Result<Json<'a>, JsonError> {
        let mut members = Vec::new();
        if self.take_token(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            members.push((self.name()?, self.value()?));
            if self.take_token(b'}') {
                return Ok(Json::Object(members));
            }
            self.expect(b',', "a comma or } was expected")?;
        }
    }

    /// A member's name and its colon.
    fn name(&mut self) -> Result<Cow<'a, str>, JsonError> {
        if self.peek_token() != Some(b'"') {
            return Err(self.error("a name in quotes was expected"));
        }
        let name = self.string()?;
        self.expect(b':', "a colon was expected")?;
        Ok(name)
    }

    /// The position of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Parses a string; borrowed when nothing is escaped.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let plain = self.run();
        if self.take(b'"') { Ok(Cow::Borrowed(plain)) } else { self.rest_of_string(plain) }
    }

    #[cold]
    fn rest_of_string(&mut self, plain: &str) -> Result<Cow<'a, str>, JsonError> {
        let mut unescaped = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(unescaped));
                }
                Some(b'\\') => unescaped.push(self.escape()?),
                Some(_) => return Err(self.error("a control character must be escaped")),
                None => return Err(self.error("the closing quote is missing")),
            }
            unescaped.push_str(self.run());
        }
    }

    /// A run of characters of a string without escapes.
    #[inline]
    fn run(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let run = &rest[..run_length(rest.as_bytes())];
        self.at += run.len();
        run
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 2;
        let plain = match self.text.as_bytes().get(start + 1) {
            Some(b'u') => return self.unicode_escape(start),
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            _ => return Err(JsonError { at: start, why: "invalid escape" }),
        };
        Ok(plain.into())
    }

    /// One `\uXXXX`, or two that form a surrogate pair.
    fn unicode_escape(&mut self, start: usize) -> Result<char, JsonError> {
        let lone = JsonError { at: start, why: "unpaired surrogate" };
        let first = self.four_digits(start)?;
        if let Some(character) = char::from_u32(first.into()) {
            return Ok(character);
        }
        if !self.text[self.at..].starts_with("\\u") {
            return Err(lone);
        }
        self.at += 2;
        let second = self.four_digits(start)?;
        match char::decode_utf16([first, second]).next() {
            Some(Ok(character)) => Ok(character),
            _ => Err(lone),
        }
    }

    fn four_digits(&mut self, start: usize) -> Result<u16, JsonError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let value = digits.and_then(|digits| {
            digits
                .iter()
                .try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)? as u16))
        });
        self.at += 4;
        value.ok_or(JsonError { at: start, why: "\\u needs four hexadecimal digits" })
    }

    fn number(&mut self) -> Result<Number<'a>, JsonError> {
        let at = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(Number { text: &self.text[at..self.at], at })
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_digit());
        if self.at == start { Err(self.error("a digit was expected")) } else { Ok(()) }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("a value was expected"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn expect(&mut self, token: u8, why: &'static str) -> Result<(), JsonError> {
        if self.take_token(token) { Ok(()) } else { Err(self.error(why)) }
    }

    pub(crate) fn take_token(&mut self, token: u8) -> bool {
        self.skip_whitespace();
        self.take(token)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn skip_whitespace(&mut self) {
        // Fast path: most documents have no whitespace, and every other token is above the space.
        if self.peek().is_none_or(|byte| byte > b' ') {
            return;
        }
        self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, why: &'static str) -> JsonError {
        JsonError { at: self.at, why }
    }
}

/// The length of the run of plain characters up to the first quote, backslash or control character.
///
/// SWAR, eight bytes at a time: a match sets the highest bit of its byte, and may set those of later bytes too.
#[inline]
fn run_length(bytes: &[u8]) -> usize {
    const WORD: usize = size_of::<u64>();
    const EACH: u64 = u64::from_ne_bytes([1; WORD]);
    const HIGHEST: u64 = 0x80 * EACH;
    let is_below = |word: u64, bound: u8| word.wrapping_sub(u64::from(bound) * EACH) & !word & HIGHEST;
    let is = |word: u64, byte: u8| is_below(word ^ (u64::from(byte) * EACH), 1);
    let (words, rest) = bytes.as_chunks::<WORD>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let ends = is_below(word, b' ') | is(word, b'"') | is(word, b'\\');
        if ends != 0 {
            return WORD * at + ends.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |byte: &&u8| !matches!(**byte, ..b' ' | b'"' | b'\\');
    bytes.len() - rest.len() + rest.iter().take_while(is_plain).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_the_first_byte_that_is_not_plain() {
        let is_plain = |byte: &u8| *byte >= 0x20 && !matches!(byte, b'"' | b'\\');
        let check = |bytes: &[u8]| {
            let expected = bytes.iter().take_while(|byte| is_plain(byte)).count();
            assert_eq!(run_length(bytes), expected, "{bytes:x?}");
        };
        // Bytes next to the terminators must not end a run.
        for around in [b'!', b'#', b'[', b']', b' ', 0x7f, 0x80, 0xa2, 0xff] {
            for (byte, at) in (0..=u8::MAX).flat_map(|byte| (0..20).map(move |at| (byte, at))) {
                let mut bytes = [around; 20];
                bytes[at] = byte;
                check(&bytes);
            }
        }
        // The first of several terminators counts, at every length.
        for (length, first, second) in
            (0..20).flat_map(|length| (0..length).flat_map(move |a| (0..length).map(move |b| (length, a, b))))
        {
            let mut bytes = vec![b'a'; length];
            bytes[first] = b'\\';
            bytes[second] = b'"';
            check(&bytes);
        }
        check(b"");
    }
}
