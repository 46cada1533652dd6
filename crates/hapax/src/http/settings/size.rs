//! Sizes in files: a number of bytes, or text with a unit. For options that are plain numbers in Rust.
//!
//! ```
//! #[derive(serde::Deserialize)]
//! struct Options {
//!     #[serde(deserialize_with = "hapax::http::settings::size::deserialize")]
//!     cache_bytes: u64,
//! }
//!
//! let options: Options = serde_json::from_str(r#"{ "cache_bytes": "64MiB" }"#)?;
//! assert_eq!(options.cache_bytes, 64 << 20);
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::fmt;
use std::marker::PhantomData;

use hapax_core::{ByteSize, ByteSizeError};
use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Reads a size.
///
/// # Errors
/// When it is not a size, or does not fit into a `T`.
pub fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(SizeVisitor(PhantomData))
}

/// Reads an optional size.
///
/// # Errors
/// When it is not a size, or does not fit into a `T`.
pub fn deserialize_option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    deserializer.deserialize_option(OptionVisitor(PhantomData))
}

struct SizeVisitor<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for SizeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 1048576 or \"64MiB\"")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<T, E> {
        ByteSize(bytes).fit().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<T, E> {
        match u64::try_from(bytes) {
            Ok(bytes) => self.visit_u64(bytes),
            Err(_) => Err(E::custom(ByteSizeError::Malformed)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse::<ByteSize>().and_then(ByteSize::fit).map_err(E::custom)
    }
}

struct OptionVisitor<T>(PhantomData<T>);

impl<'de, T: TryFrom<u64>> Visitor<'de> for OptionVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SizeVisitor(self.0).expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserialize(deserializer).map(Some)
    }
}

/// The schema of a size, for `#[schemars(with = "Size")]`.
#[cfg(feature = "schema")]
#[derive(Debug)]
pub enum Size {}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["integer", "string"],
            "description": "A number of bytes, or a number with a unit: KiB, MiB, GiB or TiB (powers of 1024), KB, MB, GB or TB (powers of 1000).",
            "minimum": 0,
            "pattern": r"^\s*[0-9]+\s*(([KkMmGgTt][Ii]?)?[Bb])?\s*$",
            "examples": [1_048_576, "64MiB", "500KB"],
        })
    }
}
