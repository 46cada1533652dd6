//! Base64 of RFC 4648 with padding, for the few places where an envelope has binary data in JSON.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let value = group >> (18 - 6 * digit) & 0x3f;
            text.push(if digit <= chunk.len() { char::from(ALPHABET[value as usize]) } else { '=' });
        }
    }
    text
}

/// `None` unless the text is what [`encode`] returns for some bytes: other spellings of the same bytes are refused.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if text.len() % 4 != 0 || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut group, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        group = group << 6 | value(digit)?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((group >> bits & 0xff) as u8);
        }
    }
    // The bits that belong to no byte are zero.
    (group & ((1 << bits) - 1) == 0 && bits < 6).then_some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_examples_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
    }

    #[test]
    fn any_bytes_are_read_as_they_were_written() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for length in 0..300 {
            assert_eq!(decode(&encode(&bytes[length..2 * length])).unwrap(), &bytes[length..2 * length]);
        }
    }

    #[test]
    fn refuses_other_spellings() {
        for text in
            ["Zg", "Zg=", "Zg===", "Zm9=", "Zh==", "Z===", "====", "Zm 9v", "Zm9v\n", "Zm9_", "=Zm9", "Z"]
        {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
