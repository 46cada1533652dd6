//! Durations as text, in the grammar of the settings files of `hapax`: `90s`, `24h`, `1h 30m`, `250ms`, `7d`.

use std::time::Duration;

pub(super) const EXPECTED: &str =
    "a duration is a number with a unit, such as \"250ms\", \"30s\", \"1h 30m\", \"24h\" or \"7d\"";

/// In milliseconds. A day has 24 hours.
const UNITS: [(&str, u64); 5] =
    [("d", 24 * 3600 * 1000), ("h", 3600 * 1000), ("m", 60 * 1000), ("s", 1000), ("ms", 1)];

pub(super) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |letter| letter.is_ascii_digit());
        let (unit, after) = split(after, |letter| letter.is_ascii_alphabetic());
        let (_, length) = UNITS.iter().find(|(known, _)| *known == unit)?;
        let part = number.parse::<u64>().ok()?.checked_mul(*length)?;
        total = total.checked_add(part)?;
        rest = after.trim_start();
    }
    Some(Duration::from_millis(total))
}

/// The longest start of `text` with such letters, and the rest.
fn split(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|letter| !is_part(letter)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_sums_of_numbers_with_units() {
        let cases = [
            ("250ms", 250),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("7d", 604_800_000),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            " ",
            "30",
            "s",
            "30 s",
            "30sec",
            "1.5h",
            "-1s",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
