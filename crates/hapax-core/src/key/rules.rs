//! [`KeyRules`]: what a deployment asks of a key beyond being one.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{KEY_LENGTH_MAX, Key, KeyError, header};

/// What a deployment asks of the keys it is sent (K-01 to K-08). The default takes every key.
///
/// ```
/// use hapax_core::key::{KeyFormat, KeyRules};
///
/// let rules = KeyRules::new().length_min(8).format(KeyFormat::UuidV7);
/// let none: [&[u8]; 0] = [];
/// assert_eq!(rules.parse(none), Ok(None));
/// assert!(rules.parse([&b"abc"[..]]).is_err());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct KeyRules {
    spelling: Spelling,
    length_min: usize,
    length_max: usize,
    format: KeyFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spelling {
    QuotedOrBare,
    Quoted,
    Raw,
}

/// What a key must look like.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum KeyFormat {
    /// Anything that is a key.
    #[default]
    Any,
    /// A UUID of any version, in the usual spelling with hyphens. One of 32 digits without them is the same key as with
    /// them: a client that keeps its keys as UUIDs may write the next attempt the other way.
    Uuid,
    /// The same of version 7, which tells when it was made.
    UuidV7,
    /// A ULID, which tells when it was made.
    Ulid,
    /// Whatever the predicate takes.
    Custom {
        /// What the refusal says is expected: it follows "the key is not".
        expected: &'static str,
        /// Whether this is such a key.
        admits: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    },
}

impl KeyRules {
    /// Every key is taken: quoted or bare, 1 to 255 characters.
    pub fn new() -> Self {
        Self {
            spelling: Spelling::QuotedOrBare,
            length_min: 1,
            length_max: KEY_LENGTH_MAX,
            format: KeyFormat::Any,
        }
    }

    /// Only quoted keys: the header as the IETF draft defines it, nothing else.
    pub fn strict(mut self) -> Self {
        self.spelling = Spelling::Quoted;
        self
    }

    /// Quoted and bare keys, as by default.
    pub fn lenient(mut self) -> Self {
        self.spelling = Spelling::QuotedOrBare;
        self
    }

    /// Quoted and bare keys, and every other printable text as it is: with spaces inside, commas, quotes, backslashes. A
    /// text that is a quoted key by the default rules stays one, so that turning this on makes no other key of any value
    /// that was a key before.
    pub fn raw(mut self) -> Self {
        self.spelling = Spelling::Raw;
        self
    }

    /// The fewest characters, after unescaping.
    pub fn length_min(mut self, length_min: usize) -> Self {
        self.length_min = length_min;
        self
    }

    /// The most characters, after unescaping. More than [`KEY_LENGTH_MAX`] cannot be allowed.
    pub fn length_max(mut self, length_max: usize) -> Self {
        self.length_max = length_max.min(KEY_LENGTH_MAX);
        self
    }

    /// What a key must look like.
    pub fn format(mut self, format: KeyFormat) -> Self {
        self.format = format;
        self
    }

    /// Whether only quoted keys are taken.
    pub fn is_strict(&self) -> bool {
        self.spelling == Spelling::Quoted
    }

    /// Whether every printable text is taken.
    pub fn is_raw(&self) -> bool {
        self.spelling == Spelling::Raw
    }

    /// How many characters a key may have, after unescaping.
    pub fn lengths(&self) -> RangeInclusive<usize> {
        self.length_min..=self.length_max
    }

    /// What a key must look like.
    pub fn key_format(&self) -> &KeyFormat {
        &self.format
    }

    /// The key in a header's lines, each given apart; `None` when there is no line.
    ///
    /// Whether a missing key is a mistake is for the caller to say. An unusable one always is (K-05).
    ///
    /// # Errors
    /// [`KeyError`] when there is more than one line, or when the line holds no key that the rules take.
    pub fn parse<'a>(&self, lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Key>, KeyError> {
        let mut lines = lines.into_iter();
        let Some(line) = lines.next() else {
            return Ok(None);
        };
        // Judged before joining: two lines can join into one valid string.
        let further = lines.count();
        if further > 0 {
            return Err(KeyError::ManyLines { lines: further + 1 });
        }
        if self.spelling == Spelling::Quoted && !header::is_quoted(line) {
            return Err(KeyError::Unquoted);
        }
        let key = if self.is_raw() { header::parse_raw(line)? } else { Key::parse(line)? };
        self.admit(key).map(Some)
    }

    /// Admits a key that came by another way than a header. It is another one than the one given where the format has
    /// two spellings of one key.
    ///
    /// # Errors
    /// [`KeyError`] when its length or format is not what the rules ask for.
    pub fn admit(&self, key: Key) -> Result<Key, KeyError> {
        let length = key.0.as_bytes().len();
        if length < self.length_min {
            return Err(KeyError::TooShort { length, length_min: self.length_min });
        }
        if length > self.length_max {
            return Err(KeyError::TooLong { length, length_max: self.length_max });
        }
        self.format.admit(key)
    }
}

impl Default for KeyRules {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyFormat {
    /// What is expected, for people.
    pub fn expected(&self) -> &'static str {
        match self {
            Self::Any => "a key",
            Self::Uuid => "a UUID",
            Self::UuidV7 => "a UUID of version 7",
            Self::Ulid => "a ULID",
            Self::Custom { expected, .. } => expected,
        }
    }

    fn admit(&self, key: Key) -> Result<Key, KeyError> {
        let key = match self {
            Self::Uuid | Self::UuidV7 => with_hyphens(key),
            _ => key,
        };
        let is_admitted = match self {
            Self::Any => true,
            Self::Uuid => uuid(key.as_str()).is_some(),
            Self::UuidV7 => uuid(key.as_str()).is_some_and(is_version_7),
            Self::Ulid => is_ulid(key.as_str()),
            Self::Custom { admits, .. } => admits(key.as_str()),
        };
        if is_admitted { Ok(key) } else { Err(KeyError::Format { expected: self.expected() }) }
    }
}

impl fmt::Debug for KeyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("Any"),
            Self::Uuid => f.write_str("Uuid"),
            Self::UuidV7 => f.write_str("UuidV7"),
            Self::Ulid => f.write_str("Ulid"),
            Self::Custom { expected, .. } => write!(f, "Custom({expected})"),
        }
    }
}

/// The UUID of 32 digits with its hyphens. The case of the digits stays: it counts in every key (K-03).
fn with_hyphens(key: Key) -> Key {
    let text = key.as_str();
    if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return key;
    }
    let [time, middle, version, variant, node] =
        [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    Key::of(&format!("{time}-{middle}-{version}-{variant}-{node}"))
}

/// Only the spelling with hyphens: braces and `urn:` would be other keys for the same UUID, and 32 digits alone may be
/// something else, such as a derived key.
fn uuid(key: &str) -> Option<uuid::Uuid> {
    const HYPHENATED_LENGTH: usize = 36;
    (key.len() == HYPHENATED_LENGTH).then(|| uuid::Uuid::try_parse(key).ok()).flatten()
}

fn is_version_7(uuid: uuid::Uuid) -> bool {
    uuid.get_version_num() == 7 && uuid.get_variant() == uuid::Variant::RFC4122
}

/// 26 digits of Crockford's base 32, of which the first holds three bits only.
fn is_ulid(key: &str) -> bool {
    key.len() == 26
        && matches!(key.as_bytes()[0], b'0'..=b'7')
        && key.bytes().all(|byte| crockford(byte).is_some())
}

fn crockford(byte: u8) -> Option<u64> {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let digit = byte.to_ascii_uppercase();
    (0..).zip(DIGITS).find(|(_, known)| **known == digit).map(|(value, _)| value)
}

/// The time with which a key begins, in milliseconds since the Unix epoch, when it is of a form that begins with one.
pub(super) fn made_at_ms(key: &str) -> Option<u64> {
    const ULID_TIME_DIGITS: usize = 10;
    if let Some(uuid) = uuid(key).filter(|uuid| is_version_7(*uuid)) {
        return Some((uuid.as_u128() >> 80) as u64);
    }
    if !is_ulid(key) {
        return None;
    }
    key.bytes().take(ULID_TIME_DIGITS).try_fold(0, |ms, byte| Some(ms << 5 | crockford(byte)?))
}
