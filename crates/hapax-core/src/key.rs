//! [`Key`], the caller's name for one operation, and [`Scope`], in which that name is unique.
//!
//! `Debug` of everything here shows hashes, never a key or a principal.

mod derive;
mod error;
mod fields;
mod header;
mod parts;
mod rules;
mod scope;

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use error::KeyError;
pub use fields::{KeyFields, KeyFieldsError};
pub use rules::{KeyFormat, KeyRules};
pub use scope::{PrincipalHash, RecordId, Scope, ScopedKey, key_hash};

use crate::text::Text;

/// The maximum length of a key: that of the APIs that made keys popular, so that their clients' keys fit.
pub const KEY_LENGTH_MAX: usize = 255;

/// The caller's name for one logical operation: 1 to 255 printable ASCII characters, not only spaces.
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
    /// Creates a key from its content, without quotes or escapes, as functions and events do.
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

    /// Creates a key from content that is already validated.
    fn of(content: &str) -> Self {
        Self(content.into())
    }

    /// Parses a header value, quoted or bare, by the default [`KeyRules`] (K-01 to K-08).
    ///
    /// # Errors
    /// [`KeyError`] when the value is not a key. The request must be refused then; never ignore the error (K-05).
    pub fn parse(header_value: &[u8]) -> Result<Self, KeyError> {
        header::parse(header_value)
    }

    /// Generates a key: a UUID of version 7.
    ///
    /// Generate it once per operation, before the first attempt; a key per attempt protects nothing.
    pub fn random() -> Self {
        Self(uuid::Uuid::now_v7().to_string().as_str().into())
    }

    /// The creation time that the key encodes: a UUID of version 7 and a ULID start with it.
    pub fn made_at(&self) -> Option<SystemTime> {
        rules::made_at_ms(self.as_str()).map(|ms| UNIX_EPOCH + Duration::from_millis(ms))
    }

    /// The content. It may identify a customer's order: keep it out of logs.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Refuses all but printable ASCII.
pub(crate) fn check_printable(bytes: &[u8]) -> Result<(), KeyError> {
    let is_printable = |byte: &u8| matches!(byte, b' '..=b'~');
    // No early exit, so that the loop is vectorised; the position is only computed for an error.
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
