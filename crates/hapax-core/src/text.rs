//! [`Text`]: an immutable string with inline storage for short ones. Every request creates two, a key and an operation,
//! and most fit without an allocation.

use std::fmt;
use std::sync::Arc;

/// A UUID has 36 bytes; with these, a text has 40 in all.
const SHORT_MAX: usize = 38;

/// An immutable string that is cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Text(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// Every text that fits. Unused bytes are zero.
    Short {
        length: u8,
        bytes: [u8; SHORT_MAX],
    },
    Long(Arc<str>),
}

impl Text {
    /// The concatenation of `texts`.
    pub(crate) fn joined<const N: usize>(texts: [&str; N]) -> Self {
        let mut bytes = [0; SHORT_MAX];
        let mut length = 0;
        for text in texts {
            let Some(target) = bytes.get_mut(length..length + text.len()) else {
                return Self(Repr::Long(texts.concat().into()));
            };
            target.copy_from_slice(text.as_bytes());
            length += text.len();
        }
        Self(Repr::Short { length: length as u8, bytes })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Short { length, bytes } => &bytes[..usize::from(*length)],
            Repr::Long(text) => text.as_bytes(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Short { .. } => std::str::from_utf8(self.as_bytes()).expect("copied from a str"),
            Repr::Long(text) => text,
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::joined([text])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_its_content_at_every_length() {
        let long = "ä".repeat(SHORT_MAX);
        for length in (0..=long.len()).filter(|length| long.is_char_boundary(*length)) {
            let text = &long[..length];
            let half = (0..=length / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let joined = Text::joined([&text[..half], &text[half..]]);
            assert_eq!(joined.as_str(), text);
            assert_eq!(joined.as_bytes(), text.as_bytes());
            assert!(joined == Text::from(text), "{length} bytes in one part and in two");
            assert!(joined != Text::from(format!("{text}\0").as_str()), "{length} bytes and one more");
        }
    }
}
