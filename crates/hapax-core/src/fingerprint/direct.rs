//! Canonical JSON of a whole document in one pass, without a tree: the common case.
//!
//! Its output equals that of [`canonical`](super::canonical), which the selection of values needs; a test compares them.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::canonical;
use crate::json::{Json, Reader};

/// Initial capacity: most requests have no more open members.
const MEMBERS_USUAL: usize = 8;

/// Appends the canonical text. `None`, with `out` in an unspecified state, when the text has no unambiguous meaning.
pub(super) fn append(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    let reader = Reader::new(bytes).ok()?;
    let mut writer = Writer { reader, source: bytes, written: 0, out, members: Vec::new() };
    writer.value()?;
    writer.write();
    writer.reader.end().ok()
}

/// Copies long runs, because most of a document is canonical already: the source from `written` to the reader's position
/// is read and canonical, and not in `out` yet.
struct Writer<'a> {
    reader: Reader<'a>,
    source: &'a [u8],
    written: usize,
    out: &'a mut Vec<u8>,
    /// The members of all open objects, innermost last.
    members: Vec<Member<'a>>,
}

/// A member and its range in the output.
struct Member<'a> {
    name: Cow<'a, str>,
    start: usize,
    end: usize,
}

impl<'a> Writer<'a> {
    /// Recurses up to the reader's depth limit.
    fn value(&mut self) -> Option<()> {
        match self.peek_token()? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => self.string().map(|_| ()),
            // Literals have one form, and numbers stay as written.
            _ => match self.reader.value() {
                Ok(Json::Null | Json::Bool(_) | Json::Number(_)) => Some(()),
                _ => None,
            },
        }
    }

    fn array(&mut self) -> Option<()> {
        self.reader.enter().ok()?;
        if !self.take(b']') {
            loop {
                self.value()?;
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return None;
                }
            }
        }
        self.reader.leave();
        Some(())
    }

    fn object(&mut self) -> Option<()> {
        self.reader.enter().ok()?;
        let (first, begin) = (self.members.len(), self.output_length());
        if !self.take(b'}') {
            self.members.reserve(MEMBERS_USUAL);
            loop {
                self.member()?;
                if self.peek_token()? == b'}' {
                    break;
                }
                if !self.take(b',') {
                    return None;
                }
            }
            self.sort(first, begin)?;
            self.members.truncate(first);
            self.take(b'}');
        }
        self.reader.leave();
        Some(())
    }

    fn member(&mut self) -> Option<()> {
        if self.peek_token()? != b'"' {
            return None;
        }
        let start = self.output_length();
        let name = self.string()?;
        if !self.take(b':') {
            return None;
        }
        self.value()?;
        self.members.push(Member { name, start, end: self.output_length() });
        Some(())
    }

    /// A string without escapes is canonical already.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.reader.at();
        let content = self.reader.string().ok()?;
        if let Cow::Owned(unescaped) = &content {
            self.out.extend_from_slice(&self.source[self.written..start]);
            let mut text = String::with_capacity(unescaped.len() + 2);
            canonical::print_string(&mut text, unescaped);
            self.out.extend_from_slice(text.as_bytes());
            self.written = self.reader.at();
        }
        Some(content)
    }

    /// Peeks at the next token and drops whitespace before it.
    #[inline]
    fn peek_token(&mut self) -> Option<u8> {
        match self.reader.peek() {
            // Fast path: most documents have no whitespace, and every other token is above the space.
            Some(byte) if byte > b' ' => Some(byte),
            _ => self.drop_whitespace(),
        }
    }

    #[cold]
    fn drop_whitespace(&mut self) -> Option<u8> {
        let before = self.reader.at();
        let token = self.reader.peek_token();
        if self.reader.at() != before {
            self.out.extend_from_slice(&self.source[self.written..before]);
            self.written = self.reader.at();
        }
        token
    }

    fn take(&mut self, token: u8) -> bool {
        self.peek_token() == Some(token) && self.reader.take_token(token)
    }

    /// The length of the output, including the run that is not copied yet.
    fn output_length(&self) -> usize {
        self.out.len() + (self.reader.at() - self.written)
    }

    fn write(&mut self) {
        let read = self.reader.at();
        self.out.extend_from_slice(&self.source[self.written..read]);
        self.written = read;
    }

    /// Sorts the members from `first` on, whose output starts at `begin`; `None` when two names are equal.
    fn sort(&mut self, first: usize, begin: usize) -> Option<()> {
        let members = &mut self.members[first..];
        let in_order = |members: &[Member<'_>]| {
            members
                .windows(2)
                .all(|pair| canonical::compare_names(&pair[0].name, &pair[1].name) == Ordering::Less)
        };
        if in_order(members) {
            return Some(());
        }
        members.sort_unstable_by(|a, b| canonical::compare_names(&a.name, &b.name));
        if !in_order(members) {
            return None;
        }
        self.write();
        // Append the members in order behind the output, then move them to their place.
        let end = self.out.len();
        for member in &self.members[first..] {
            self.out.extend_from_within(member.start..member.end);
            self.out.push(b',');
        }
        self.out.pop();
        self.out.copy_within(end.., begin);
        self.out.truncate(end);
        Some(())
    }
}

#[cfg(test)]
mod tests;
