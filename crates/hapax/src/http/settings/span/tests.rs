use super::*;

#[test]
fn a_span_is_parsed_and_formatted() {
    let check = |text: &str, ms: u64, shown: &str| {
        let span: Span = text.parse().unwrap();
        assert_eq!(span.0, Duration::from_millis(ms), "{text}");
        assert_eq!(span.to_string(), shown);
        assert_eq!(shown.parse(), Ok(span));
    };
    check("0s", 0, "0s");
    check("90s", 90_000, "1m 30s");
    check("24h", 86_400_000, "1d");
    check("1h 30m", 5_400_000, "1h 30m");
    check("1h30m", 5_400_000, "1h 30m");
    check("250ms", 250, "250ms");
    check("7d", 604_800_000, "7d");
    check(" 5m ", 300_000, "5m");
}

#[test]
fn invalid_spans_are_refused() {
    for text in [
        "",
        " ",
        "5",
        "s",
        "-5s",
        "5 s",
        "1.5h",
        "5x",
        "5s,",
        "99999999999999999999s",
        "9999999999999999d",
        "5ß",
    ] {
        assert_eq!(text.parse::<Span>(), Err(SpanError), "{text:?}");
    }
}

#[test]
fn e_06_a_span_is_formatted_as_iso_8601() {
    for (text, expected) in [
        ("0s", "PT0S"),
        ("24h", "P1D"),
        ("30d", "P30D"),
        ("90s", "PT1M30S"),
        ("1d 2h 3m 4s", "P1DT2H3M4S"),
        ("250ms", "PT0.250S"),
        ("1m 5ms", "PT1M0.005S"),
    ] {
        assert_eq!(text.parse::<Span>().unwrap().iso_8601(), expected);
    }
}
