//! Keys made of several parts, such as the source and the id of an event.

use sha2::{Digest, Sha256};

use super::Key;
use super::scope::{Hex, first};
use crate::length::LengthPrefix;

impl Key {
    /// The key of these parts, the same in every process: the first half of SHA-256 over `kind` and the parts, each of them
    /// after its length, as 32 hexadecimal digits.
    ///
    /// Parts may be of any length and in any script. They are not joined by a separator, so text that moves from one part
    /// to the next makes another key. `kind` separates the uses of this function.
    ///
    /// ```
    /// use hapax_core::Key;
    ///
    /// let of = |source, id| Key::of_parts("my event 1", [source, id]);
    /// assert_eq!(of("/shop", "42"), of("/shop", "42"));
    /// assert_ne!(of("/shop", "42"), of("/shop4", "2"));
    /// ```
    pub fn of_parts(kind: &str, parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update(LengthPrefix::of(part).as_bytes());
            hash.update(part);
        };
        add(kind.as_bytes());
        parts.into_iter().for_each(|part| add(part.as_ref()));
        Self::of(&Hex(&first::<16>(&hash.finalize())).to_string())
    }
}
