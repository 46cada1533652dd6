//! [`KeyRules`]: a deployment's requirements on keys.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{KEY_LENGTH_MAX, Key, KeyError, header};

/// A deployment's requirements on the keys of requests (K-01 to K-08). The default accepts every key.
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
    quoting: Quoting,
    length_min: usize,
    length_max: usize,
    format: KeyFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quoting {
    QuotedOrBare,
    Quoted,
    Raw,
}

/// The required format of a key.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum KeyFormat {
    /// Any key.
    #[default]
    Any,
    /// A UUID of any version, hyphenated. 32 digits without hyphens are the same key as with them: a client that stores
    /// its keys as UUIDs may format the next attempt the other way.
    Uuid,
    /// A UUID of version 7, which encodes its creation time.
    UuidV7,
    /// A ULID, which encodes its creation time.
    Ulid,
    /// A key that satisfies a predicate.
    Custom {
        /// The format as the refusal names it, after "the key is not".
        expected: &'static str,
        /// The predicate.
        admits: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    },
}

impl KeyRules {
    /// Accepts every key: quoted or bare, 1 to 255 characters.
    pub fn new() -> Self {
        Self {
            quoting: Quoting::QuotedOrBare,
            length_min: 1,
            length_max: KEY_LENGTH_MAX,
            format: KeyFormat::Any,
        }
    }

    /// Accepts only quoted keys: the header as the IETF draft defines it.
    pub fn strict(mut self) -> Self {
        self.quoting = Quoting::Quoted;
        self
    }

    /// Accepts quoted and bare keys (the default).
    pub fn lenient(mut self) -> Self {
        self.quoting = Quoting::QuotedOrBare;
        self
    }

    /// Accepts quoted and bare keys, and every other printable text verbatim: with inner spaces, commas, quotes,
    /// backslashes. A value that is a key by the default rules stays the same key, so turning this on changes no existing
    /// key.
    pub fn raw(mut self) -> Self {
        self.quoting = Quoting::Raw;
        self
    }

    /// Sets the minimum length, after unescaping.
    pub fn length_min(mut self, length_min: usize) -> Self {
        self.length_min = length_min;
        self
    }

    /// Sets the maximum length, after unescaping. Values above [`KEY_LENGTH_MAX`] are clamped to it.
    pub fn length_max(mut self, length_max: usize) -> Self {
        self.length_max = length_max.min(KEY_LENGTH_MAX);
        self
    }

    /// Sets the required format.
    pub fn format(mut self, format: KeyFormat) -> Self {
        self.format = format;
        self
    }

    /// Whether only quoted keys are accepted.
    pub fn is_strict(&self) -> bool {
        self.quoting == Quoting::Quoted
    }

    /// Whether every printable text is accepted.
    pub fn is_raw(&self) -> bool {
        self.quoting == Quoting::Raw
    }

    /// The accepted lengths, after unescaping.
    pub fn lengths(&self) -> RangeInclusive<usize> {
        self.length_min..=self.length_max
    }

    /// The required format.
    pub fn key_format(&self) -> &KeyFormat {
        &self.format
    }

    /// Parses the lines of the key's header, one item per line; `None` when there is no line.
    ///
    /// The caller decides whether a missing key is an error. An unusable one always is (K-05).
    ///
    /// # Errors
    /// [`KeyError`] when there is more than one line, or when the rules refuse the line.
    pub fn parse<'a>(&self, lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Key>, KeyError> {
        let mut lines = lines.into_iter();
        let Some(line) = lines.next() else {
            return Ok(None);
        };
        // Checked before joining: two lines can join into one valid string.
        let further = lines.count();
        if further > 0 {
            return Err(KeyError::ManyLines { lines: further + 1 });
        }
        if self.quoting == Quoting::Quoted && !header::is_quoted(line) {
            return Err(KeyError::Unquoted);
        }
        let key = if self.is_raw() { header::parse_raw(line)? } else { Key::parse(line)? };
        self.admit(key).map(Some)
    }

    /// Checks a key from another source than a header and returns its normal form: where the format has two spellings of
    /// one key, the result may differ from the argument.
    ///
    /// # Errors
    /// [`KeyError`] when the rules refuse its length or format.
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
    /// The format in words, for refusals.
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

/// Inserts the hyphens into a UUID of 32 digits. The case of the digits stays: keys are case-sensitive (K-03).
fn with_hyphens(key: Key) -> Key {
    let text = key.as_str();
    if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return key;
    }
    let [time, middle, version, variant, node] =
        [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    Key::of(&format!("{time}-{middle}-{version}-{variant}-{node}"))
}

/// Accepts only the hyphenated form: braces and `urn:` would be other keys for the same UUID, and 32 bare digits may be
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

/// The creation time at the start of a UUIDv7 or ULID, in milliseconds since the Unix epoch.
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
