use super::{format_cursor, is_id_prefix, literal, parse_cursor};

#[test]
fn a_pattern_matches_its_text_only() {
    for (text, pattern) in [("hapax:", "hapax:"), ("a*b?", "a\\*b\\?"), ("[x]^\\", "\\[x\\]\\^\\\\")] {
        assert_eq!(literal(text), pattern);
    }
}

#[test]
fn only_what_an_id_may_begin_with_is_searched_for() {
    for (prefix, is_one) in [("", true), ("0af9", true), ("0AF9", false), ("zz", false), ("*", false)] {
        assert_eq!(is_id_prefix(prefix), is_one, "{prefix}");
    }
}

#[test]
fn a_cursor_reads_back_and_nothing_else_does() {
    let id = "ab".repeat(32);
    for cursor in [format!("0-{id}"), format!("19a8c3f2b11-{id}")] {
        assert_eq!(parse_cursor(&cursor).as_ref().map(format_cursor).as_deref(), Some(cursor.as_str()));
    }
    for cursor in [String::new(), "-".to_owned(), format!("+1-{id}"), format!("01-{id}"), format!("1-{id}0")]
    {
        assert!(parse_cursor(&cursor).is_none(), "{cursor}");
    }
}
