use hapax_core::Class;
use http::HeaderValue;

use super::*;

fn with(name: &'static str) -> Answer {
    let mut answer = Answer::new(StatusCode::OK, "");
    answer.headers.insert(name, HeaderValue::from_static("1"));
    answer
}

#[test]
fn a_response_is_read_back_unchanged() {
    let mut answer = Answer::new(StatusCode::CREATED, vec![0, 255]);
    for (name, value) in [("content-type", "a/b"), ("link", "one"), ("link", "two"), ("set-cookie", "a=b")] {
        answer.headers.append(name, HeaderValue::from_static(value));
    }
    answer.trailers.append("grpc-status", HeaderValue::from_static("0"));
    let recorded = answer.clone().recorded().unwrap();
    assert_eq!(recorded.class, Class::Success);
    assert_eq!(Answer::of(&recorded), Some(answer));
    let class = |status| Answer::new(status, "").recorded().unwrap().class;
    assert_eq!(class(StatusCode::NOT_FOUND), Class::Error);
}

#[test]
fn unreplayable_responses_are_refused() {
    let early = StatusCode::EARLY_HINTS;
    assert_eq!(Answer::new(early, "").recorded(), Err(AnswerError::Interim(early)));
    for status in [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED] {
        assert_eq!(Answer::new(status, "x").recorded(), Err(AnswerError::Content(status)));
        assert!(Answer::new(status, "").recorded().is_ok());
    }
    for name in ["connection", "content-length", "date", "x-idempotent-replayed", "x-request-id"] {
        let refused = Err(AnswerError::Field(HeaderName::from_static(name)));
        assert_eq!(with(name).recorded(), refused, "{name}");
    }
}

#[test]
fn other_outcomes_are_not_responses() {
    let recorded = with("a").recorded().unwrap();
    let cut = recorded.clone().with_meta(recorded.meta.slice(1..));
    assert_eq!(Answer::of(&cut), None);
    let of_function =
        Recorded::new(recorded.class, Format::FUNCTION, recorded.payload).with_meta(recorded.meta);
    assert_eq!(Answer::of(&of_function), None);
}

#[test]
fn debug_shows_no_content() {
    let mut answer = Answer::new(StatusCode::OK, "canary-body");
    answer.headers.insert("location", HeaderValue::from_static("canary-field"));
    let shown = format!("{answer:?}");
    assert!(!shown.contains("canary"), "{shown}");
}
