//! Parses the names of records: a key, an id, the start of an id.

use hapax_core::Key;
use hapax_core::key::key_hash;

use crate::failure::{Code, Failure};
use crate::view::hex;

/// The digits of an id.
const ID_DIGITS: usize = 64;

/// Parses a key, bare or in double quotes as in a header.
pub fn parse_key(typed: &str) -> Result<Key, Failure> {
    let key = if typed.starts_with('"') { Key::parse(typed.as_bytes()) } else { Key::new(typed) };
    key.map_err(|error| {
        Failure::new(Code::KeyInvalid, "this is not a valid key")
            .because(error)
            .hint("a key is 1 to 255 printable ASCII characters, bare or in double quotes")
    })
}

/// The start of the ids of `key` in all scopes.
pub fn id_prefix(key: &Key) -> String {
    hex(&key_hash(key))
}

/// Parses the start of an id.
pub fn parse_digits(typed: &str) -> Result<String, Failure> {
    let is_hex = !typed.is_empty() && typed.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex && typed.len() <= ID_DIGITS {
        return Ok(typed.to_ascii_lowercase());
    }
    Err(Failure::new(Code::InputInvalid, "this is not the id of a record")
        .hint("an id has 64 hexadecimal digits; a record can also be found by its key"))
}
