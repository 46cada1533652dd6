use serde_json::json;

use super::*;

fn recorded_of(written: serde_json::Value) -> Result<Recorded, Failure> {
    serde_json::from_value::<ResponseView>(written).unwrap().recorded()
}

#[test]
fn the_given_response_is_recorded() {
    let written = json!({ "status": 201, "body": "{}",
        "headers": { "Content-Type": "application/json", "link": ["one", "two"] } });
    let answer = Answer::of(&recorded_of(written).unwrap()).unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (201, &b"{}"[..]));
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.headers.get_all("link").iter().collect::<Vec<_>>(), ["one", "two"]);
    let again = ResponseView::of(&answer).recorded().unwrap();
    assert_eq!(Answer::of(&again).unwrap(), answer, "the admin API transfers it unchanged");
}

#[test]
fn an_invalid_response_is_refused_without_repeating_it() {
    let long = "x".repeat(RESPONSE_HEAD_BYTES_MAX);
    let many: BTreeMap<String, &str> = (0..40_000).map(|n| (n.to_string(), "")).collect();
    for written in [
        json!({ "status": 0 }),
        json!({ "status": 99 }),
        json!({ "status": 100 }),
        json!({ "status": 199 }),
        json!({ "status": 1000 }),
        json!({ "status": 204, "body": "canary" }),
        json!({ "status": 200, "body": "canary", "body_base64": "" }),
        json!({ "status": 200, "body_base64": "%" }),
        json!({ "status": 200, "headers": { "a": "canary\r\nb: c" } }),
        json!({ "status": 200, "headers": { "a": ["fine", "canary\n"] } }),
        json!({ "status": 200, "headers": { "a": "canary\u{0}" } }),
        json!({ "status": 200, "headers": { "a b": "canary" } }),
        json!({ "status": 200, "headers": { "": "canary" } }),
        json!({ "status": 200, "headers": { "a": long } }),
        json!({ "status": 200, "headers": many }),
        json!({ "status": 200, "headers": { "Content-Length": "6" } }),
        json!({ "status": 200, "headers": { "Transfer-Encoding": "chunked" } }),
    ] {
        let failure = recorded_of(written).unwrap_err();
        assert_eq!(failure.code(), Code::InputInvalid);
        let text = format!("{failure:?}");
        assert!(!text.contains("canary"), "{text}");
    }
}

#[test]
fn a_header_line_is_a_name_and_a_value() {
    let parsed = parse_field("Location:  /orders/7 ").unwrap();
    assert_eq!(parsed, ("Location".to_owned(), "/orders/7".to_owned()));
    for wrong in ["", "Location", ": x", "a b: c", "a: b\nc: d"] {
        assert_eq!(parse_field(wrong).unwrap_err().code(), Code::InputInvalid, "{wrong}");
    }
}

#[test]
fn values_of_a_field_keep_their_order() {
    let mut head = Fields::new();
    for (name, value) in [("Link", "one"), ("link", "two"), ("a", "three")] {
        add(&mut head, name.to_owned(), value.to_owned());
    }
    assert_eq!(head["link"].iter().collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(head["a"].iter().collect::<Vec<_>>(), ["three"]);
}
