//! [`EnvelopeError`], and the JSON objects that the formats of envelopes have in common.
//!
//! Reading is strict and bounded (V-13): what one reader takes for the id of an event and another one does not would be two
//! events for one of them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The maximum number of members or attributes of one event: far more than any known producer sends.
pub(super) const ATTRIBUTES_MAX: usize = 100;
/// The maximum length of an attribute's name. CloudEvents recommends at most 20 characters.
pub(super) const NAME_LENGTH_MAX: usize = 64;
/// The maximum size of an attribute's value: CloudEvents guarantees the forwarding of events up to this size.
pub(super) const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Why a message is not the event that its envelope claims, or an event cannot be written in an envelope.
///
/// It names attributes and shows none of their values.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// A required attribute is missing.
    #[error("`{attribute}` is missing")]
    Missing {
        /// Its name.
        attribute: Cow<'static, str>,
    },
    /// An attribute occurs more than once, in one case or another.
    #[error("`{attribute}` occurs more than once")]
    Repeated {
        /// Its name.
        attribute: Cow<'static, str>,
    },
    /// The value of an attribute is not allowed.
    #[error("`{attribute}` {why}")]
    Invalid {
        /// Its name.
        attribute: Cow<'static, str>,
        /// What is wrong with the value.
        why: &'static str,
    },
    /// The version of the envelope is unknown.
    #[error("`{attribute}` is not \"{supported}\", the only known version")]
    Version {
        /// The attribute with the version.
        attribute: &'static str,
        /// The known version.
        supported: &'static str,
    },
    /// The name of an attribute is not allowed.
    #[error("{name:?} is not the name of an attribute: {max} lower-case letters and digits at most", max = NAME_LENGTH_MAX)]
    Name {
        /// The name, shortened to the maximum length.
        name: String,
    },
    /// The event has too many attributes.
    #[error("the event has more than {max} attributes", max = ATTRIBUTES_MAX)]
    TooMany,
    /// The envelope is not a JSON object, or not an array of them.
    #[error("the envelope is not the expected JSON, at line {line} column {column}")]
    Json {
        /// The line of the first error, from 1.
        line: usize,
        /// The column of the first error, from 1.
        column: usize,
    },
    /// A message in another format of CloudEvents than JSON, or a batch where one event is expected.
    #[error("the content type is neither that of data nor that of one event in JSON")]
    Format,
    /// An event of a batch is invalid.
    #[error("event {index} of the batch: {error}")]
    InBatch {
        /// The index of the event, from zero.
        index: usize,
        /// What is wrong with it.
        error: Box<EnvelopeError>,
    },
}

impl EnvelopeError {
    /// The name used in metrics and documents.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Repeated { .. } => "repeated",
            Self::Invalid { .. } => "invalid",
            Self::Version { .. } => "version",
            Self::Name { .. } => "name",
            Self::TooMany => "too_many",
            Self::Json { .. } => "json",
            Self::Format => "format",
            Self::InBatch { .. } => "in_batch",
        }
    }

    /// The attribute that is wrong, if it is a single one.
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::Missing { attribute } | Self::Repeated { attribute } | Self::Invalid { attribute, .. } => {
                Some(attribute)
            }
            Self::Version { attribute, .. } => Some(attribute),
            Self::InBatch { error, .. } => error.attribute(),
            Self::Name { .. } | Self::TooMany | Self::Json { .. } | Self::Format => None,
        }
    }

    pub(super) fn missing(attribute: impl Into<Cow<'static, str>>) -> Self {
        Self::Missing { attribute: attribute.into() }
    }

    pub(super) fn repeated(attribute: impl Into<Cow<'static, str>>) -> Self {
        Self::Repeated { attribute: attribute.into() }
    }

    pub(super) fn invalid(attribute: impl Into<Cow<'static, str>>, why: &'static str) -> Self {
        Self::Invalid { attribute: attribute.into(), why }
    }

    pub(super) fn bad_name(name: &str) -> Self {
        Self::Name { name: name.chars().take(NAME_LENGTH_MAX).collect() }
    }

    pub(super) fn json(error: &serde_json::Error) -> Self {
        Self::Json { line: error.line(), column: error.column() }
    }
}

/// The members of a JSON object, in their order and with their values as they are written.
pub(super) struct Members<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads an object; a name may occur only once, because parsers differ in which of the values they take.
    pub(super) fn read(json: &'a [u8]) -> Result<Self, EnvelopeError> {
        let members: Self = serde_json::from_slice(json).map_err(|error| EnvelopeError::json(&error))?;
        if members.0.len() > ATTRIBUTES_MAX {
            return Err(EnvelopeError::TooMany);
        }
        let mut names: Vec<&str> = members.0.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) if is_name(pair[0]) => Err(EnvelopeError::repeated(pair[0].to_owned())),
            Some(pair) => Err(EnvelopeError::bad_name(pair[0])),
            None => Ok(members),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }

    /// The string at `name`; `None` if it is missing or `null`.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<String>, EnvelopeError> {
        match self.get(name).map(RawValue::get) {
            None | Some("null") => Ok(None),
            Some(json) => match serde_json::from_str(json) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(EnvelopeError::invalid(name, "is not a string")),
            },
        }
    }

    /// The string at `name`, which is required and not empty.
    pub(super) fn required(&self, name: &'static str) -> Result<String, EnvelopeError> {
        let text = self.text(name)?.ok_or_else(|| EnvelopeError::missing(name))?;
        if text.is_empty() {
            return Err(EnvelopeError::invalid(name, "is empty"));
        }
        Ok(text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                    // One more than allowed, so that the caller sees it.
                    if members.len() > ATTRIBUTES_MAX {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                    }
                }
                Ok(Members(members))
            }
        }

        json.deserialize_map(MembersVisitor)
    }
}

/// Whether it may be the name of an attribute: lower-case letters and digits.
pub(super) fn is_name(name: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Refuses the characters that CloudEvents allows in no attribute, and values that are too long.
pub(super) fn check_value(attribute: &str, value: &str) -> Result<(), EnvelopeError> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(EnvelopeError::invalid(attribute.to_owned(), "has more than 64 KiB"));
    }
    let is_noncharacter = |character: char| {
        let code = u32::from(character);
        (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
    };
    if value.chars().any(|character| character.is_control() || is_noncharacter(character)) {
        return Err(EnvelopeError::invalid(
            attribute.to_owned(),
            "has a control character or a noncharacter",
        ));
    }
    Ok(())
}

/// Whether it is a time of RFC 3339, as far as its form goes.
pub(super) fn is_time(text: &str) -> bool {
    let shape = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, expected)| match expected {
                b'0' => byte.is_ascii_digit(),
                _ => byte.eq_ignore_ascii_case(&expected),
            })
    };
    let Some((seconds, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else {
        return false;
    };
    let rest = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => {
            let digits = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if digits.len() == fraction.len() {
                return false;
            }
            digits
        }
    };
    let in_range = |from: usize, range: std::ops::RangeInclusive<u8>| {
        text.get(from..from + 2)
            .and_then(|digits| digits.parse().ok())
            .is_some_and(|number| range.contains(&number))
    };
    shape(seconds, "0000-00-00T00:00:00")
        && [in_range(5, 1..=12), in_range(8, 1..=31), in_range(11, 0..=23), in_range(14, 0..=59)]
            .iter()
            .all(|holds| *holds)
        // 60 is a leap second.
        && in_range(17, 0..=60)
        && (shape(rest, "Z") || shape(rest, "+00:00") || shape(rest, "-00:00"))
}

#[cfg(test)]
mod tests;
