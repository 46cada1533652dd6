//! The canonical text of a whole document in one pass, without a tree: most requests with a key need no more.
//!
//! It says the same as [`canonical`](super::canonical), which selecting values needs; a test compares them.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::canonical;
use crate::json::{Json, Reader};

/// How many members the objects of most requests have together.
const MEMBERS_USUAL: usize = 8;

/// Appends the canonical text; `None`, and nothing of use, when there is none that is sure to mean the same.
pub(super) fn append(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    let reader = Reader::new(bytes).ok()?;
    let mut writer = Writer { reader, source: bytes, written: 0, out, members: Vec::new() };
    writer.value()?;
    writer.write();
    writer.reader.end().ok()
}

/// Most of a document is spelled as it must be already. What is goes over in long runs: the source from `written` to
/// where the reader is has been read, belongs to the text as it is, and is not in `out` yet.
struct Writer<'a> {
    reader: Reader<'a>,
    source: &'a [u8],
    written: usize,
    out: &'a mut Vec<u8>,
    /// Those of the objects that are open, innermost last.
    members: Vec<Member<'a>>,
}

/// A member, and where it stands in the text.
struct Member<'a> {
    name: Cow<'a, str>,
    start: usize,
    end: usize,
}

impl<'a> Writer<'a> {
    /// Recurses as deep as the reader lets it.
    fn value(&mut self) -> Option<()> {
        match self.ahead()? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => self.string().map(|_| ()),
            // Words have one spelling, and numbers stay as they are.
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
        let (first, begin) = (self.members.len(), self.place());
        if !self.take(b'}') {
            self.members.reserve(MEMBERS_USUAL);
            loop {
                self.member()?;
                if self.ahead()? == b'}' {
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
        if self.ahead()? != b'"' {
            return None;
        }
        let start = self.place();
        let name = self.string()?;
        if !self.take(b':') {
            return None;
        }
        self.value()?;
        self.members.push(Member { name, start, end: self.place() });
        Some(())
    }

    /// A string that has no escapes is spelled as it must be already.
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

    /// What comes next. Whitespace before it is left out.
    #[inline]
    fn ahead(&mut self) -> Option<u8> {
        match self.reader.peek() {
            // Most documents have none, and everything else is above the space.
            Some(byte) if byte > b' ' => Some(byte),
            _ => self.behind_whitespace(),
        }
    }

    #[cold]
    fn behind_whitespace(&mut self) -> Option<u8> {
        let before = self.reader.at();
        let ahead = self.reader.ahead();
        if self.reader.at() != before {
            self.out.extend_from_slice(&self.source[self.written..before]);
            self.written = self.reader.at();
        }
        ahead
    }

    fn take(&mut self, token: u8) -> bool {
        self.ahead() == Some(token) && self.reader.take_token(token)
    }

    /// How long the text is so far.
    fn place(&self) -> usize {
        self.out.len() + (self.reader.at() - self.written)
    }

    fn write(&mut self) {
        let read = self.reader.at();
        self.out.extend_from_slice(&self.source[self.written..read]);
        self.written = read;
    }

    /// Puts the members from `first` on, which begin at `begin`, in order; `None` when two have one name.
    fn sort(&mut self, first: usize, begin: usize) -> Option<()> {
        let members = &mut self.members[first..];
        let in_order = |members: &[Member<'_>]| {
            members.windows(2).all(|pair| canonical::order(&pair[0].name, &pair[1].name) == Ordering::Less)
        };
        if in_order(members) {
            return Some(());
        }
        members.sort_unstable_by(|a, b| canonical::order(&a.name, &b.name));
        if !in_order(members) {
            return None;
        }
        self.write();
        // Behind what is there in their order, then all of it to where it belongs.
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
