//! Parses and formats durations and timestamps.

use std::time::Duration;

use hapax_core::Timestamp;
use jiff::{SignedDuration, Span, SpanRelativeTo};

/// Parses a duration: `90s`, `24h`, `7d`, `1h 30m`. A day has 24 hours.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a duration with a unit, such as 90s, 24h or 7d".to_owned();
    let span: Span = text.parse().map_err(|_| wrong())?;
    let span: SignedDuration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| "a duration cannot be negative".to_owned())
}

/// A timestamp in RFC 3339, in UTC; none if it is beyond the calendar, which means never.
pub fn rfc3339(at: Timestamp) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(at.as_millis()).ok()?).ok()?;
    Some(format!("{at:.3}"))
}

/// A timestamp relative to `now`: `5m 12s ago`, `in 23h 59m`.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    match (at > now, rfc3339(at)) {
        (_, None) => "never".to_owned(),
        (true, _) => format!("in {}", brief(at.since(now))),
        (false, _) => format!("{} ago", brief(now.since(at))),
    }
}

/// A duration in its two largest units.
pub fn brief(span: Duration) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
    let seconds = span.as_secs();
    let Some(largest) = UNITS.iter().position(|(_, length)| seconds >= *length) else {
        return format!("{}ms", span.as_millis());
    };
    let (unit, length) = UNITS[largest];
    let first = format!("{}{unit}", seconds / length);
    match UNITS.get(largest + 1) {
        Some((unit, shorter)) if seconds % length >= *shorter => {
            format!("{first} {}{unit}", seconds % length / shorter)
        }
        _ => first,
    }
}

#[cfg(test)]
mod tests;
