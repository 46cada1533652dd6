use super::{is_id_prefix, literal};

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
