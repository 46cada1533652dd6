//! What a caller names an operation by ([`Key`]) and what that name is unique within ([`Scope`]).
//!
//! `Debug` of everything here shows hashes, never a key or a principal.

mod derive;
mod error;
mod header;
mod rules;
mod scope;

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use error::KeyError;
pub use rules::{KeyFormat, KeyRules};
pub use scope::{PrincipalHash, RecordId, Scope, ScopedKey, key_hash};

use crate::text::Text;

/// The most characters a key may have: what the APIs that made keys popular allow, so that their clients' keys fit.
pub const KEY_LENGTH_MAX: usize = 255;

/// What the caller chose to name one logical operation: 1 to 255 printable ASCII characters, not only spaces.
///
/// ```
/// use hapax_core::Key;
///
/// assert_eq!(Key::parse(b"\"order-1\"")?, Key::parse(b"order-1")?);
/// assert_eq!(Key::derive("order-1", "create", None)?, Key::derive("order-1", "create", None)?);
/// # Ok::<(), hapax_core::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(Text);

impl Key {
    /// The key with this content, as functions and events have it: nothing is quoted, nothing is escaped.
    ///
    /// # Errors
    /// [`KeyError`] when the content is empty, all spaces, too long or not printable ASCII (K-07, K-08).
    pub fn new(content: impl AsRef<str>) -> Result<Self, KeyError> {
        let content = content.as_ref();
        check_printable(content.as_bytes())?;
        if content.is_empty() {
            return Err(KeyError::Empty);
        }
        if content.bytes().all(|byte| byte == b' ') {
            return Err(KeyError::OnlySpaces);
        }
        if content.len() > KEY_LENGTH_MAX {
            return Err(KeyError::TooLong { length: content.len(), length_max: KEY_LENGTH_MAX });
        }
        Ok(Self::of(content))
    }

    /// The key with this content, which is known to be one.
    fn of(content: &str) -> Self {
        Self(content.into())
    }

    /// The key in a header's value, quoted or bare, by the default [`KeyRules`] (K-01 to K-08).
    ///
    /// # Errors
    /// [`KeyError`] when the value holds no key. It must be refused then, never ignored (K-05).
    pub fn parse(header_value: &[u8]) -> Result<Self, KeyError> {
        header::parse(header_value)
    }

    /// A fresh key: a UUID of version 7.
    ///
    /// Make it once per operation, before the first attempt; a key made per attempt protects nothing.
    pub fn random() -> Self {
        Self(uuid::Uuid::now_v7().to_string().as_str().into())
    }

    /// When the key was made, when it tells: a UUID of version 7 and a ULID begin with the time.
    pub fn made_at(&self) -> Option<SystemTime> {
        rules::made_at_ms(self.as_str()).map(|ms| UNIX_EPOCH + Duration::from_millis(ms))
    }

    /// The key itself. It may identify a customer's order: keep it out of logs.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Refuses all but printable ASCII.
pub(crate) fn check_printable(bytes: &[u8]) -> Result<(), KeyError> {
    let is_printable = |byte: &u8| matches!(byte, b' '..=b'~');
    // Without a way out the compiler takes many bytes at a time; where the fault is matters to few.
    if bytes.iter().fold(true, |all, byte| all & is_printable(byte)) {
        return Ok(());
    }
    let at = bytes.iter().position(|byte| !is_printable(byte)).unwrap_or_default();
    Err(KeyError::Character { at })
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(hash {})", scope::Hex(&key_hash(self)))
    }
}
