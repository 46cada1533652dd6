//! Text for terminals.

/// Makes text from a store or a caller safe for a terminal: control characters are escaped.
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("POST /\u{1b}[2J\n"), "POST /\\u{1b}[2J\\n");
        assert_eq!(printable("Zürich"), "Zürich");
    }
}
