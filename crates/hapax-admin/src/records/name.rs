//! What people type to name records: a key, an id, the start of an id.

use hapax_core::Key;
use hapax_core::key::key_hash;

use crate::failure::{Code, Failure};
use crate::view::hex;

/// Digits of an id.
const ID_DIGITS: usize = 64;

/// The key as it was typed: in double quotes as in a header, or bare.
pub fn parse_key(typed: &str) -> Result<Key, Failure> {
    let key = if typed.starts_with('"') { Key::parse(typed.as_bytes()) } else { Key::new(typed) };
    key.map_err(|error| {
        Failure::new(Code::KeyInvalid, "what was given as a key is none")
            .because(error)
            .hint("a key is 1 to 255 printable ASCII characters, bare or in double quotes")
    })
}

/// The start of every id that `key` has, in any scope.
pub fn id_prefix(key: &Key) -> String {
    hex(&key_hash(key))
}

/// `typed` as the start of an id.
pub fn parse_digits(typed: &str) -> Result<String, Failure> {
    let is_hex = !typed.is_empty() && typed.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex && typed.len() <= ID_DIGITS {
        return Ok(typed.to_ascii_lowercase());
    }
    Err(Failure::new(Code::InputInvalid, "this is not a record's id")
        .hint("an id has 64 hexadecimal digits; a record can be named by its key too"))
}
