//! The token of the admin listener, and its comparison in constant time.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hapax_core::Nonce;
use subtle::ConstantTimeEq as _;

use crate::failure::{Code, Failure};

/// Shorter tokens could be guessed over the network.
const LENGTH_MIN: usize = 16;
/// Longer content is the wrong file.
const LENGTH_MAX: usize = 512;

/// The environment variable with the token.
pub const TOKEN_VARIABLE: &str = "HAPAX_ADMIN_TOKEN";

/// The token of the admin listener. Its `Debug` does not contain it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A configured token.
    pub fn new(configured: &str) -> Result<Self, Failure> {
        let invalid = |message: String| {
            Failure::new(Code::TokenInvalid, message)
                .hint("a token has 16 to 512 printable ASCII characters without spaces; make it a random one")
        };
        let configured = configured.trim();
        if !configured.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("the token has a character that is not printable ASCII".to_owned()));
        }
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&configured.len()) {
            return Err(invalid(format!(
                "a token of {} characters is too short or too long",
                configured.len()
            )));
        }
        Ok(Self(configured.to_owned()))
    }

    /// The token in the environment. An invalid value is an error: ignoring it would activate another token.
    pub fn from_variable(value: &OsStr) -> Result<Self, Failure> {
        match value.to_str() {
            Some(text) => Self::new(text),
            None => Err(Failure::new(Code::TokenInvalid, format!("{TOKEN_VARIABLE} is not UTF-8"))
                .hint("a token has 16 to 512 printable ASCII characters without spaces")),
        }
    }

    /// The token in a file, without surrounding whitespace.
    pub fn read(file: &Path) -> Result<Self, Failure> {
        let content = std::fs::read_to_string(file).map_err(|error| {
            Failure::new(Code::TokenInvalid, format!("cannot read the token in {}", file.display()))
                .because(error)
                .hint("use a file that contains only the token and is readable by this user")
        })?;
        Self::new(&content)
    }

    /// A new token of 128 random bits.
    pub fn random() -> Self {
        Self(URL_SAFE_NO_PAD.encode(Nonce::random().as_bytes()))
    }

    /// Whether `given` is this token, in constant time.
    pub fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests;
