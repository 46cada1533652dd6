//! [`KeyError`]: why a value is not a key. It carries positions and lengths, never the key's content.

use std::fmt;

/// Why a value is not a key.
///
/// Positions are byte offsets into the input, from zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// The key is empty (K-07).
    Empty,
    /// The key has only spaces (K-07).
    OnlySpaces,
    /// Longer than allowed (K-08).
    TooLong {
        /// The length after unescaping.
        length: usize,
        /// The maximum length.
        length_max: usize,
    },
    /// Shorter than the rules require (K-08).
    TooShort {
        /// The length after unescaping.
        length: usize,
        /// The minimum length.
        length_min: usize,
    },
    /// Not printable ASCII (K-08).
    Character {
        /// The position of the byte.
        at: usize,
    },
    /// A space, `"`, `;` or `\` in a key without quotes (K-02).
    NeedsQuotes {
        /// The position of the character.
        at: usize,
    },
    /// A comma: more than one key in one line (K-06).
    List {
        /// The position of the comma.
        at: usize,
    },
    /// More than one header line (K-06).
    ManyLines {
        /// The number of lines.
        lines: usize,
    },
    /// No quotes, and the rules are strict (K-01).
    Unquoted,
    /// The closing quote is missing (K-01).
    Unterminated,
    /// A `\` before a character other than `"` or `\` (K-01).
    Escape {
        /// The position of the `\`.
        at: usize,
    },
    /// Malformed parameters after the closing quote (K-04).
    Parameter {
        /// The position of the first invalid byte.
        at: usize,
    },
    /// Not of the format that the rules require (K-08).
    Format {
        /// The expected format.
        expected: &'static str,
    },
    /// The parameters to derive a key from are not JSON that Python could print.
    Params {
        /// The position of the first invalid byte.
        at: usize,
        /// The syntax error.
        why: &'static str,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the key is empty; send a unique value such as a UUID"),
            Self::OnlySpaces => f.write_str("the key is all spaces; send a unique value such as a UUID"),
            Self::TooLong { length, length_max } => {
                write!(f, "the key has {length} characters and may have {length_max}; send a shorter one")
            }
            Self::TooShort { length, length_min } => {
                write!(f, "the key has {length} characters and must have {length_min}; send a longer one")
            }
            Self::Character { at } => write!(
                f,
                "the key has a byte at position {at} that is not printable ASCII; use letters, digits and `-`"
            ),
            Self::NeedsQuotes { at } => write!(
                f,
                "the key has a character at position {at} that is only allowed inside quotes; write \"…\" around the key"
            ),
            Self::List { at } => {
                write!(
                    f,
                    "the key has a comma at position {at}, as a list has; send one key, or write \"…\" around it"
                )
            }
            Self::ManyLines { lines } => write!(f, "the key's header occurs {lines} times; send it once"),
            Self::Unquoted => f.write_str("the key is not quoted; write \"…\" around it"),
            Self::Unterminated => f.write_str("the key's closing quote is missing; end it with \""),
            Self::Escape { at } => {
                write!(f, "the \\ at position {at} is not an escape; inside quotes write only \\\" and \\\\")
            }
            Self::Parameter { at } => write!(
                f,
                "the value is malformed after the key, at position {at}; end it after the closing quote"
            ),
            Self::Format { expected } => write!(f, "the key is not {expected}; send one that is"),
            Self::Params { at, why } => {
                write!(f, "the parameters are not usable JSON at position {at}: {why}; correct them there")
            }
        }
    }
}

impl std::error::Error for KeyError {}
