use super::*;

#[test]
fn durations_are_parsed_in_all_usual_units() {
    let cases = [
        ("90s", 90),
        ("24h", 86_400),
        ("7d", 604_800),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2 weeks", 1_209_600),
        ("0s", 0),
    ];
    for (text, seconds) in cases {
        assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
    }
    assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
}

#[test]
fn invalid_durations_are_refused() {
    for text in ["", "24", "h", "-5s", "5s ago", "1 month", "1y", "soon", "99999999999999999999d"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}

#[test]
fn timestamps_are_formatted_in_utc_with_milliseconds() {
    let cases = [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_790_000_000_123, "2026-09-21T14:13:20.123Z"),
    ];
    for (ms, text) in cases {
        assert_eq!(rfc3339(Timestamp::from_millis(ms)).as_deref(), Some(text));
    }
    assert_eq!(rfc3339(Timestamp::from_millis(u64::MAX)), None);
}

#[test]
fn timestamps_are_formatted_relative_to_now() {
    let now = Timestamp::from_millis(10_000_000);
    let cases = [
        (10_000_000, "0ms ago"),
        (9_999_500, "500ms ago"),
        (10_061_000, "in 1m 1s"),
        (6_400_000, "1h ago"),
        (u64::MAX, "never"),
    ];
    for (ms, text) in cases {
        assert_eq!(relative(Timestamp::from_millis(ms), now), text);
    }
}

#[test]
fn a_duration_is_formatted_in_its_two_largest_units() {
    let cases =
        [(59, "59s"), (60, "1m"), (86_399, "23h 59m"), (86_400, "1d"), (90_061, "1d 1h"), (86_460, "1d")];
    for (seconds, text) in cases {
        assert_eq!(brief(Duration::from_secs(seconds)), text);
    }
}
