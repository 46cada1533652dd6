//! Values in the query of a URL.

/// `text` as the value of a parameter: everything but letters, digits and a few harmless signs percent-encoded.
pub(crate) fn query_value(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_quotes_and_non_ascii_are_encoded() {
        assert_eq!(query_value("/records?id=a&b=\"c d\"é"), "/records%3Fid%3Da%26b%3D%22c%20d%22%C3%A9");
    }
}
