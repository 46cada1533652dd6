//! [`Span`]: a duration in human-readable form.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration, written as `90s`, `24h`, `1h 30m`, `250ms` or `7d`. A day has 24 hours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

const UNITS: [(&str, u64); 5] =
    [("d", 24 * 3600 * 1000), ("h", 3600 * 1000), ("m", 60 * 1000), ("s", 1000), ("ms", 1)];

/// The text is not a duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a duration is a number with a unit, such as 90s, 24h or 7d")]
pub struct SpanError;

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let mut rest = text.trim();
        let mut total: u64 = 0;
        if rest.is_empty() {
            return Err(SpanError);
        }
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
            let number: u64 = rest[..digits].parse().map_err(|_| SpanError)?;
            rest = &rest[digits..];
            let letters =
                rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).len();
            let unit = UNITS.iter().find(|(unit, _)| *unit == &rest[..letters]).ok_or(SpanError)?;
            total = number.checked_mul(unit.1).and_then(|ms| ms.checked_add(total)).ok_or(SpanError)?;
            rest = rest[letters..].trim_start();
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return f.write_str("0s");
        }
        let mut separator = "";
        for (unit, length) in UNITS {
            if left >= length {
                write!(f, "{separator}{}{unit}", left / length)?;
                left %= length;
                separator = " ";
            }
        }
        Ok(())
    }
}

impl Span {
    /// In ISO 8601, with days, hours, minutes and seconds: `PT1H30M`.
    pub fn iso_8601(self) -> String {
        let (total, ms) = (self.0.as_secs(), self.0.subsec_millis());
        let (days, hours, minutes, seconds) =
            (total / 86_400, total / 3600 % 24, total / 60 % 60, total % 60);
        let part =
            |number: u64, unit: char| if number == 0 { String::new() } else { format!("{number}{unit}") };
        let seconds = if ms == 0 { part(seconds, 'S') } else { format!("{seconds}.{ms:03}S") };
        let (day, time) = (part(days, 'D'), part(hours, 'H') + &part(minutes, 'M') + &seconds);
        match (day.as_str(), time.as_str()) {
            ("", "") => "PT0S".to_owned(),
            (_, "") => format!("P{day}"),
            _ => format!("P{day}T{time}"),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A duration: a number with a unit, d, h, m, s or ms, or several of them.",
            "pattern": r"^\s*([0-9]+(d|h|m|s|ms)\s*)+$",
            "examples": ["90s", "24h", "1h 30m"],
        })
    }
}

impl TryFrom<String> for Span {
    type Error = SpanError;

    fn try_from(text: String) -> Result<Self, SpanError> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

#[cfg(test)]
mod tests;
