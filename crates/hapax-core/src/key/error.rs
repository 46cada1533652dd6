//! [`KeyError`]: why something is not a key. It names positions and lengths, never the key's content.

use std::fmt;

/// Why something is not a key.
///
/// Positions count bytes from zero in what was given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// Nothing there (K-07).
    Empty,
    /// Nothing but spaces (K-07).
    OnlySpaces,
    /// Longer than allowed (K-08).
    TooLong {
        /// How long it is, after unescaping.
        length: usize,
        /// How long it may be.
        length_max: usize,
    },
    /// Shorter than the rules ask for (K-08).
    TooShort {
        /// How long it is, after unescaping.
        length: usize,
        /// How long it must be.
        length_min: usize,
    },
    /// Not printable ASCII (K-08).
    Character {
        /// Where.
        at: usize,
    },
    /// A space, `"`, `;` or `\` in a key without quotes (K-02).
    NeedsQuotes {
        /// Where.
        at: usize,
    },
    /// A comma: more than one key in one line (K-06).
    List {
        /// Where.
        at: usize,
    },
    /// More than one header line (K-06).
    ManyLines {
        /// How many.
        lines: usize,
    },
    /// No quotes, and the rules are strict (K-01).
    Unquoted,
    /// The closing quote is missing (K-01).
    Unterminated,
    /// A `\` before something other than `"` or `\` (K-01).
    Escape {
        /// Where the `\` is.
        at: usize,
    },
    /// Something that is no parameter after the closing quote (K-04).
    Parameter {
        /// Where it stops making sense.
        at: usize,
    },
    /// Not of the format that the rules ask for (K-08).
    Format {
        /// What a key should look like.
        expected: &'static str,
    },
    /// The parameters to derive a key from are not JSON that Python could print too.
    Params {
        /// Where they stop making sense.
        at: usize,
        /// What is wrong there.
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
                    "there is a comma at position {at}, as in a list; send one key, or write \"…\" around it"
                )
            }
            Self::ManyLines { lines } => write!(f, "the key's header is there {lines} times; send it once"),
            Self::Unquoted => f.write_str("the key is not quoted; write \"…\" around it"),
            Self::Unterminated => f.write_str("the key's closing quote is missing; end it with \""),
            Self::Escape { at } => {
                write!(f, "the \\ at position {at} escapes nothing; inside quotes write only \\\" and \\\\")
            }
            Self::Parameter { at } => write!(
                f,
                "what follows the key makes no sense at position {at}; end the value after the closing quote"
            ),
            Self::Format { expected } => write!(f, "the key is not {expected}; send one that is"),
            Self::Params { at, why } => {
                write!(f, "the parameters are not usable JSON at position {at}: {why}; mend them there")
            }
        }
    }
}

impl std::error::Error for KeyError {}
