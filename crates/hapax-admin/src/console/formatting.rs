//! Numbers and states as text.

/// The digits of a shortened id.
const ID_DIGITS_SHORT: usize = 12;

/// A state with spaces instead of underscores.
pub(crate) fn state(name: &str) -> String {
    name.replace('_', " ")
}

/// A shortened id.
pub(crate) fn short_id(id: &str) -> String {
    id.chars().take(ID_DIGITS_SHORT).collect()
}

/// A message as a sentence: `no such record` becomes `No such record`.
pub(crate) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A number of bytes: `1.5 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// An integer with separated thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A rate: `0.5/s`, `12/s`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate <= 0.0 => "0/s".to_owned(),
        rate if rate < 10.0 => format!("{rate:.1}/s"),
        rate => format!("{rate:.0}/s"),
    }
}

/// A duration given in seconds: `850 µs`, `12 ms`, `1.5 s`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 0.001 => format!("{:.0} µs", short * 1e6),
        short if short < 0.01 => format!("{:.1} ms", short * 1e3),
        short if short < 1.0 => format!("{:.0} ms", short * 1e3),
        long => format!("{long:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_separators() {
        assert_eq!([0, 1023, 1536, 5 << 30].map(bytes), ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]);
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]
        );
        assert_eq!([0.0, 0.5, 12.4].map(rate), ["0/s", "0.5/s", "12/s"]);
        assert_eq!([0.000_85, 0.0012, 0.012, 1.5].map(seconds), ["850 µs", "1.2 ms", "12 ms", "1.5 s"]);
        assert_eq!(sentence("élan"), "Élan");
        assert_eq!(sentence(""), "");
    }
}
