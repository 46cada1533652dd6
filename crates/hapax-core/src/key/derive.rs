//! Keys derived from what the operation is about, the same in every language.
//!
//! The parameters are hashed as Python's `json.dumps(params, sort_keys=True)` prints them: services in other
//! languages derive the same key with a few lines of their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem;

use sha2::{Digest, Sha256};

use super::scope::{Hex, first};
use super::{Key, KeyError};
use crate::json::{self, Json, Number, Spelling};

impl Key {
    /// The key of doing `action` to `entity`, the same in every process and every language.
    ///
    /// It is the first half of SHA-256 over `entity:action` and, when there are parameters, `:` and their JSON as
    /// Python prints it with sorted names, as 32 hexadecimal digits. `null`, `{}` and `[]` are no parameters.
    ///
    /// ```
    /// use hapax_core::Key;
    ///
    /// let params = serde_json::json!({ "currency": "EUR", "amount": 12.5 });
    /// let key = Key::derive("order-123", "refund", Some(&params))?;
    /// assert_eq!(key, Key::derive_json("order-123", "refund", r#"{"amount": 12.50, "currency": "EUR"}"#)?);
    /// # Ok::<(), hapax_core::KeyError>(())
    /// ```
    ///
    /// # Errors
    /// [`KeyError::Params`] when the parameters nest deeper than [`JSON_DEPTH_MAX`](crate::JSON_DEPTH_MAX).
    pub fn derive(entity: &str, action: &str, params: Option<&serde_json::Value>) -> Result<Self, KeyError> {
        // By way of text, so that there is one printer and numbers survive however serde_json keeps them.
        match params {
            Some(params) => Self::derive_json(entity, action, &params.to_string()),
            None => derived(entity, action, Json::Null),
        }
    }

    /// The same from parameters that are still text, with integers of any size.
    ///
    /// # Errors
    /// [`KeyError::Params`] when the text is no JSON, nests too deep, has a number too large for a float, or a
    /// surrogate without its other half.
    pub fn derive_json(entity: &str, action: &str, params_json: &str) -> Result<Self, KeyError> {
        let params = json::parse(params_json.as_bytes())
            .map_err(|error| KeyError::Params { at: error.at, why: error.why })?;
        derived(entity, action, params)
    }
}

fn derived(entity: &str, action: &str, mut params: Json<'_>) -> Result<Key, KeyError> {
    let mut text = format!("{entity}:{action}");
    let absent = match &params {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    };
    if !absent {
        params.objects_all(&mut |members| {
            // The map orders names by code point, as Python does, and the last of several values wins.
            *members = mem::take(members).into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
            true
        });
        text.push(':');
        json::print::<Python>(&mut text, &params)?;
    }
    Ok(Key(Hex(&first::<16>(&Sha256::digest(text))).to_string().as_str().into()))
}

/// As Python's `json.dumps` does.
struct Python;

impl Spelling for Python {
    type Error = KeyError;
    const COMMA: &'static str = ", ";
    const COLON: &'static str = ": ";

    fn string(text: &mut String, content: &str) {
        text.push('"');
        for character in content.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\u{8}' => text.push_str("\\b"),
                '\u{c}' => text.push_str("\\f"),
                ' '..='~' => text.push(character),
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        // Writing to a string cannot fail.
                        let _ = write!(text, "\\u{unit:04x}");
                    }
                }
            }
        }
        text.push('"');
    }

    fn number(text: &mut String, number: &Number<'_>) -> Result<(), KeyError> {
        if number.text == "-0" {
            // Python's integers have no negative zero.
            text.push('0');
        } else if number.text.contains(['.', 'e', 'E']) {
            let value = number.text.parse().unwrap_or(f64::INFINITY);
            if !value.is_finite() {
                return Err(KeyError::Params { at: number.at, why: "the number is too large for a float" });
            }
            print_float(text, value);
        } else {
            text.push_str(number.text);
        }
        Ok(())
    }
}

/// As Python's `repr` does: the fewest digits that read back as the same float, with an exponent of at least two
/// digits below 0.0001 and from 1e16 on.
fn print_float(text: &mut String, value: f64) {
    let scientific = shortest(value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a string cannot fail.
        let _ = write!(text, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    if value.is_sign_negative() {
        text.push('-');
    }
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let shift = exponent.unsigned_abs() as usize;
    if exponent < 0 {
        let _ = write!(text, "0.{}{digits}", "0".repeat(shift - 1));
    } else {
        let padded = format!("{digits:0<width$}", width = shift + 2);
        let (whole, fraction) = padded.split_at(shift + 1);
        let _ = write!(text, "{whole}.{fraction}");
    }
}

/// The fewest digits that read back as `value`, and of those the nearest to it.
///
/// Where two are equally near, Rust takes the upper one and Python the even one, as exact formatting does. At a
/// power of two the gap below is narrower and the nearest may not read back; then the other one is meant.
fn shortest(value: f64) -> String {
    let shortest = format!("{value:e}");
    let decimals =
        shortest.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    let even = format!("{value:.decimals$e}");
    if even.parse() == Ok(value) { even } else { shortest }
}
