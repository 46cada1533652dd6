//! The canonical text of a whole document in one pass, without a tree: most requests with a key need no more.
//!
//! It says the same as [`canonical`](super::canonical), which selecting values needs; a test compares them.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::canonical;
use crate::json::{Json, Reader};

/// The canonical text; `None` when there is none that is sure to mean the same.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let text = String::with_capacity(bytes.len() + 8);
    let mut writer =
        Writer { reader: Reader::new(bytes).ok()?, text, members: Vec::new(), sorted: String::new() };
    writer.value()?;
    writer.reader.end().ok()?;
    Some(writer.text)
}

struct Writer<'a> {
    reader: Reader<'a>,
    text: String,
    /// Those of the objects that are open, innermost last.
    members: Vec<Member<'a>>,
    /// Where members are put in order.
    sorted: String,
}

/// A member that was written, with the comma behind it.
struct Member<'a> {
    name: Cow<'a, str>,
    start: usize,
    end: usize,
}

impl Writer<'_> {
    /// Recurses as deep as the reader lets it.
    fn value(&mut self) -> Option<()> {
        match self.reader.ahead() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            _ => {
                match self.reader.value().ok()? {
                    Json::String(content) => canonical::print_read(&mut self.text, &content),
                    Json::Number(number) => self.text.push_str(number.text),
                    word => canonical::print(&mut self.text, &word),
                }
                Some(())
            }
        }
    }

    fn array(&mut self) -> Option<()> {
        self.reader.enter().ok()?;
        self.text.push('[');
        if !self.reader.take_token(b']') {
            loop {
                self.value()?;
                if self.reader.take_token(b']') {
                    break;
                }
                self.comma()?;
            }
        }
        self.text.push(']');
        self.reader.leave();
        Some(())
    }

    fn object(&mut self) -> Option<()> {
        self.reader.enter().ok()?;
        self.text.push('{');
        let (first, begin) = (self.members.len(), self.text.len());
        if !self.reader.take_token(b'}') {
            loop {
                let (name, start) = (self.reader.name().ok()?, self.text.len());
                canonical::print_read(&mut self.text, &name);
                self.text.push(':');
                self.value()?;
                self.text.push(',');
                self.members.push(Member { name, start, end: self.text.len() });
                if self.reader.take_token(b'}') {
                    break;
                }
                if !self.reader.take_token(b',') {
                    return None;
                }
            }
            self.sort(first, begin)?;
            // The comma behind the last one.
            self.text.pop();
        }
        self.members.truncate(first);
        self.text.push('}');
        self.reader.leave();
        Some(())
    }

    fn comma(&mut self) -> Option<()> {
        self.reader.take_token(b',').then(|| self.text.push(','))
    }

    /// Puts the members from `first` on, written from `begin` on, in order; `None` when two have one name.
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
        self.sorted.clear();
        self.sorted.reserve(self.text.len() - begin);
        members.iter().for_each(|member| self.sorted.push_str(&self.text[member.start..member.end]));
        self.text.truncate(begin);
        self.text.push_str(&self.sorted);
        Some(())
    }
}

#[cfg(test)]
mod tests;
