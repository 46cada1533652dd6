//! [`ByteSize`]: a human-readable number of bytes. The one parser for files, flags and the URLs of stores.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, written as `64MiB`, `16KiB`, `1GB` or `1048576`. Units are case-insensitive.
///
/// ```
/// use hapax_core::ByteSize;
///
/// assert_eq!("64MiB".parse(), Ok(ByteSize(64 << 20)));
/// assert_eq!("64MB".parse(), Ok(ByteSize(64_000_000)));
/// assert_eq!("64".parse(), Ok(ByteSize(64)));
/// assert!("64M".parse::<ByteSize>().is_err());
/// assert_eq!(ByteSize(64 << 20).to_string(), "64MiB");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ByteSize(pub u64);

const BINARY: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
const DECIMAL: [(&str, u64); 5] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000), ("B", 1)];

/// An error parsing a [`ByteSize`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ByteSizeError {
    /// Not a whole number, or an unknown unit.
    Malformed,
    /// The number of bytes does not fit the target type.
    TooLarge,
}

impl ByteSizeError {
    /// The accepted syntax.
    pub const EXPECTED: &str = "a size is a whole number of bytes, or one with a unit: KiB, MiB, GiB or TiB (powers of \
                                1024), KB, MB, GB or TB (powers of 1000), such as 64MiB";
}

impl fmt::Display for ByteSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => Self::EXPECTED,
            Self::TooLarge => "the size is larger than this option can take",
        })
    }
}

impl std::error::Error for ByteSizeError {}

impl ByteSize {
    /// Converts the number of bytes to another integer type.
    ///
    /// # Errors
    /// [`TooLarge`](ByteSizeError::TooLarge) when it does not fit.
    pub fn fit<T: TryFrom<u64>>(self) -> Result<T, ByteSizeError> {
        T::try_from(self.0).map_err(|_| ByteSizeError::TooLarge)
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(ByteSizeError::Malformed);
        }
        let unit = unit.trim_start();
        let known = || BINARY.iter().chain(&DECIMAL).find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let unit_bytes = if unit.is_empty() { Some(1) } else { known().map(|(_, bytes)| *bytes) };
        let unit_bytes = unit_bytes.ok_or(ByteSizeError::Malformed)?;
        // Digits alone fail to parse only on overflow.
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_bytes));
        bytes.map(Self).ok_or(ByteSizeError::TooLarge)
    }
}

/// In the largest power of 1024 that divides it, or as a plain number, so that it parses back to the same size.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BINARY.iter().find(|(_, bytes)| self.0 > 0 && self.0.is_multiple_of(*bytes)) {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_plain_numbers_and_units() {
        let cases = [
            ("0", 0),
            ("64", 64),
            ("64B", 64),
            ("16KiB", 16 << 10),
            ("64MiB", 64 << 20),
            ("1GiB", 1 << 30),
            ("2TiB", 2 << 40),
            ("1KB", 1000),
            ("5MB", 5_000_000),
            ("1GB", 1_000_000_000),
            ("1TB", 1_000_000_000_000),
            (" 1 mib ", 1 << 20),
            ("1kb", 1000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_other_text_and_names_the_accepted_units() {
        for text in ["", "MiB", "64M", "64Mi", "64MiBs", "1.5GiB", "-1", "1 000", "1KiB 1B", "64 Mbit"] {
            assert_eq!(text.parse::<ByteSize>(), Err(ByteSizeError::Malformed), "{text}");
        }
        for unit in ["KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB"] {
            assert!(ByteSizeError::Malformed.to_string().contains(unit), "{unit}");
        }
        for text in ["18446744073709551616", "16777216TiB"] {
            assert_eq!(text.parse::<ByteSize>(), Err(ByteSizeError::TooLarge), "{text}");
        }
        assert_eq!(ByteSize(1 << 32).fit::<u32>(), Err(ByteSizeError::TooLarge));
        assert_eq!(ByteSize(7).fit::<u32>(), Ok(7));
    }

    #[test]
    fn display_parses_back_to_the_same_size() {
        let cases =
            [(0, "0"), (64, "64"), (1000, "1000"), (1024, "1KiB"), (32 << 20, "32MiB"), (3 << 29, "1536MiB")];
        for (bytes, text) in cases {
            assert_eq!(ByteSize(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(ByteSize(bytes)));
        }
    }
}
