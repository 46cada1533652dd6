use hapax_core::RecordId;

use super::{bound, format_cursor, parse_cursor};

#[test]
fn a_cursor_round_trips_and_nothing_else_parses() {
    let place = (1_790_000_000_000, RecordId::from_bytes([7; 32]));
    let cursor = format_cursor(&place);
    assert_eq!(parse_cursor(&cursor), Some(place));
    let upper = cursor.to_uppercase();
    for wrong in ["", "-", "1", "zz-07", &cursor[1..cursor.len() - 1], &upper, &format!("0{cursor}")] {
        assert_eq!(parse_cursor(wrong), None, "{wrong}");
    }
}

#[test]
fn a_prefix_has_a_first_and_a_last_id() {
    let shown = |prefix, filler| bound(prefix, filler).map(|id| id.to_string());
    assert_eq!(shown("ab", b'0'), Some(format!("ab{}", "0".repeat(62))));
    assert_eq!(shown("ab", b'f'), Some(format!("ab{}", "f".repeat(62))));
    let long = "0".repeat(65);
    for wrong in ["zz", "AB", "é", &long] {
        assert_eq!(bound(wrong, b'0'), None, "{wrong}");
    }
}
