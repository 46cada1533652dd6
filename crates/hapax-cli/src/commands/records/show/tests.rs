use hapax_admin::records::response::FieldLines;
use hapax_admin::view::ClassView;

use super::*;

fn recorded(payload: Option<&str>, payload_hex: Option<&str>) -> RecordedView {
    RecordedView {
        class: ClassView::Success,
        format: "operator".to_owned(),
        status: None,
        headers: None,
        meta_bytes: 0,
        payload_bytes: 2,
        meta_hex: None,
        payload: payload.map(str::to_owned),
        payload_hex: payload_hex.map(str::to_owned),
    }
}

#[test]
fn control_characters_in_a_payload_are_escaped() {
    assert_eq!(content(&recorded(Some("a\n\u{1b}[2Jb"), None)), ["payload\na\n\\u{1b}[2Jb"]);
    assert_eq!(content(&recorded(None, Some("ff00"))), ["payload (hexadecimal)\nff00"]);
}

#[test]
fn the_head_of_a_response_is_decoded() {
    let headers = [("location".to_owned(), FieldLines::One("/a\u{1b}".to_owned()))].into();
    let meta_hex = Some("01".to_owned());
    let answer =
        RecordedView { status: Some(201), headers: Some(headers), meta_hex, ..recorded(Some("{}"), None) };
    assert_eq!(content(&answer), ["head\n201\nlocation: /a\\u{1b}", "payload\n{}"]);
}
