//! [`Span`]: a span of time as settings write it.

use std::time::Duration;

use serde::Deserialize;
use serde::de::Error;

/// A span of time as settings write it: `250ms`, `30s`, `5m`, `25h`, `30d`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        span(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no span of time, such as `30s`")))
    }
}

fn span(text: &str) -> Option<Span> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Span(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(unit_ms)?)))
}
