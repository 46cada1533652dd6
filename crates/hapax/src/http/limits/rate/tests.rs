use std::time::Duration;

use super::{Rate, RateError};

#[test]
fn a_rate_is_written_as_it_is_read() {
    let cases = [
        ("10/1m", 10, 60_000, "10/1m"),
        ("1/90s", 1, 90_000, "1/90s"),
        ("5/60s", 5, 60_000, "5/1m"),
        ("3/24h", 3, 86_400_000, "3/1d"),
        ("2/1500ms", 2, 1500, "2/1500ms"),
        (" 7 / 2h ", 7, 7_200_000, "7/2h"),
        ("4294967295/1ms", u32::MAX, 1, "4294967295/1ms"),
    ];
    for (text, attempts, per, written) in cases {
        let rate: Rate = text.parse().unwrap();
        assert_eq!(rate, Rate::new(attempts, Duration::from_millis(per)).unwrap(), "{text}");
        assert_eq!(rate.to_string(), written);
    }
}

#[test]
fn invalid_rates_are_refused() {
    let cases = [
        ("", RateError::Slash),
        ("10", RateError::Slash),
        ("/1m", RateError::Attempts),
        ("0/1m", RateError::Attempts),
        ("-1/1m", RateError::Attempts),
        ("+1/1m", RateError::Attempts),
        ("4294967296/1m", RateError::Attempts),
        ("1/", RateError::Span),
        ("1/m", RateError::Span),
        ("1/60", RateError::Span),
        ("1/0s", RateError::Span),
        ("1/1w", RateError::Span),
        ("1/1.5s", RateError::Span),
        ("1/367d", RateError::Span),
        ("1/99999999999999999999d", RateError::Span),
        ("1/18446744073709551615d", RateError::Span),
    ];
    for (text, error) in cases {
        assert_eq!(text.parse::<Rate>(), Err(error), "{text}");
    }
    assert_eq!(Rate::new(1, Duration::MAX), Err(RateError::Span));
}
