//! Values of header fields in the protocol bindings of CloudEvents for HTTP and NATS: text of any script,
//! percent-encoded, and in older senders quoted.

use std::borrow::Cow;

/// The text: without quotes, then percent-decoded once. `None` unless both are well-formed and the result is UTF-8.
pub(crate) fn decode(value: &[u8]) -> Option<String> {
    unquoted(value).and_then(|value| percent_decoded(&value)).and_then(|value| String::from_utf8(value).ok())
}

/// Percent-encoded so that only visible ASCII without `"` and `%` is left as it is.
pub(crate) fn encode(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!' | b'#'..=b'$' | b'&'..=b'~' => value.push(char::from(byte)),
            _ => value.push_str(&format!("%{byte:02X}")),
        }
    }
    value
}

fn unquoted(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(rest) = value.strip_prefix(b"\"") else {
        return Some(value.into());
    };
    let mut content = Vec::with_capacity(rest.len());
    let mut bytes = rest.iter().copied();
    loop {
        match bytes.next()? {
            b'"' => break,
            b'\\' => content.push(bytes.next()?),
            byte => content.push(byte),
        }
    }
    bytes.next().is_none().then(|| content.into())
}

fn percent_decoded(value: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut bytes = value.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        // Two digits of four bits each fit.
        decoded.push((digit()? << 4 | digit()?) as u8);
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_read_as_it_was_written() {
        for text in ["", "Euro € 😀", "100%", "\"quoted\"", "a b", "\\", "!~", "\u{0}\u{7f}\u{9f}", "%41"]
        {
            let value = encode(text);
            assert!(value.bytes().all(|byte| byte.is_ascii_graphic()), "{value}");
            assert_eq!(decode(value.as_bytes()).as_deref(), Some(text));
        }
        assert_eq!(encode("Euro € 😀"), "Euro%20%E2%82%AC%20%F0%9F%98%80");
    }

    #[test]
    fn values_of_older_senders_are_read() {
        for (value, text) in [
            (&br#""a b""#[..], "a b"),
            (br#""a \"b\" \\""#, "a \"b\" \\"),
            (b"a b", "a b"),
            (b"%e2%82%ac", "€"),
        ] {
            assert_eq!(decode(value).as_deref(), Some(text));
        }
    }

    #[test]
    fn refuses_what_is_not_well_formed() {
        for value in [&b"%C0%A0"[..], b"%4", b"%", b"%zz", b"\"a", b"\"a\"b", b"\"a\\", b"\xff"] {
            assert_eq!(decode(value), None, "{value:?}");
        }
    }
}
