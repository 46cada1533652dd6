//! The secret that opens the admin listener, and how it is compared.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hapax_core::Nonce;
use subtle::ConstantTimeEq as _;

use crate::failure::{Code, Failure};

/// Fewer characters could be guessed over the network.
const LENGTH_MIN: usize = 16;
/// More than any token has; keeps a wrong file from being taken for one.
const LENGTH_MAX: usize = 512;

/// The environment variable that may hold the token itself.
pub const TOKEN_VARIABLE: &str = "HAPAX_ADMIN_TOKEN";

/// The token of the admin listener. It is shown nowhere but where it was made.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The token that somebody chose.
    pub fn new(chosen: &str) -> Result<Self, Failure> {
        let unfit = |message: String| {
            Failure::new(Code::TokenInvalid, message)
                .hint("a token has 16 to 512 printable ASCII characters without spaces; make it a random one")
        };
        let chosen = chosen.trim();
        if !chosen.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(unfit("the token has a character that cannot be sent".to_owned()));
        }
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&chosen.len()) {
            return Err(unfit(format!("a token of {} characters is not taken", chosen.len())));
        }
        Ok(Self(chosen.to_owned()))
    }

    /// The token in the environment. What cannot be one is refused: without it another token would count.
    pub fn of_variable(value: &OsStr) -> Result<Self, Failure> {
        match value.to_str() {
            Some(text) => Self::new(text),
            None => Err(Failure::new(Code::TokenInvalid, format!("{TOKEN_VARIABLE} is not UTF-8"))
                .hint("a token has 16 to 512 printable ASCII characters without spaces")),
        }
    }

    /// The token in a file, spaces and line ends around it left out.
    pub fn read(file: &Path) -> Result<Self, Failure> {
        let content = std::fs::read_to_string(file).map_err(|error| {
            Failure::new(Code::TokenInvalid, format!("cannot read the token in {}", file.display()))
                .because(error)
                .hint("name a file that holds nothing but the token and that this user may read")
        })?;
        Self::new(&content)
    }

    /// A fresh token of 128 random bits.
    pub fn random() -> Self {
        Self(URL_SAFE_NO_PAD.encode(Nonce::random().as_bytes()))
    }

    /// Whether `given` is this token; takes as long for a near miss as for a far one.
    pub fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }

    /// The token itself, to be sent or shown to whoever may have it.
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
