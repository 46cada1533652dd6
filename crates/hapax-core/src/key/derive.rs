//! Keys derived from entity, action and parameters, identical in every language.
//!
//! The parameters are hashed as Python's `json.dumps(params, sort_keys=True)` prints them, so that services in other
//! languages can derive the same key in a few lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem;

use sha2::{Digest, Sha256};

use super::scope::{Hex, first};
use super::{Key, KeyError};
use crate::json::{self, Json, JsonStyle, Number};

impl Key {
    /// Derives the key of `action` on `entity`, identical in every process and every language.
    ///
    /// It is the first half of SHA-256 over `entity:action` and, when there are parameters, `:` and their JSON as
    /// Python prints it with sorted names, as 32 hexadecimal digits. `null`, `{}` and `[]` count as no parameters.
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
        // Through text, so that there is one printer and numbers survive whatever their representation in serde_json.
        match params {
            Some(params) => Self::derive_json(entity, action, &params.to_string()),
            None => derived(entity, action, Json::Null),
        }
    }

    /// As [`derive`](Self::derive), with the parameters as JSON text and integers of any size.
    ///
    /// # Errors
    /// [`KeyError::Params`] when the text is not JSON, nests too deeply, or has a number too large for a float or an
    /// unpaired surrogate.
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
        json::print::<PythonStyle>(&mut text, &params)?;
    }
    Ok(Key(Hex(&first::<16>(&Sha256::digest(text))).to_string().as_str().into()))
}

/// Python's `json.dumps`.
struct PythonStyle;

impl JsonStyle for PythonStyle {
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

/// Python's `repr`: the fewest digits that parse back to the same float, with an exponent of at least two digits below
/// 0.0001 and from 1e16 on.
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

/// The fewest digits that parse back to `value`, and of those the nearest to it.
///
/// On a tie Rust takes the upper candidate and Python the even one, as exact formatting does. At a power of two the gap
/// below is narrower and the even candidate may not parse back; then the upper one is correct.
fn shortest(value: f64) -> String {
    let shortest = format!("{value:e}");
    let decimals =
        shortest.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    let even = format!("{value:.decimals$e}");
    if even.parse() == Ok(value) { even } else { shortest }
}
