use hapax::http::Code;
use http::HeaderValue;

use super::*;

fn document(body: &str) -> Option<Problem> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json; charset=utf-8"));
    Problem::of(&headers, body.as_bytes())
}

#[test]
fn c_02_every_type_of_the_layer_has_a_meaning_that_agrees_with_its_advice() {
    for code in Code::ALL {
        let meaning = meaning(code.name()).unwrap_or_else(|| panic!("{code} has no meaning"));
        let is_retried = matches!(meaning, Meaning::InProgress | Meaning::Later);
        assert_eq!(is_retried, code.retryable(), "{code}");
        assert_eq!(meaning == Meaning::Uncertain, code == Code::Uncertain, "{code}");
        assert_eq!(meaning == Meaning::Mismatch, code == Code::KeyReused, "{code}");
    }
}

#[test]
fn c_02_a_type_is_known_under_any_base() {
    for base in ["https://hapax.dev/errors/", "https://shop.example/docs#", "urn:problem:", ""] {
        let problem = document(&format!(r#"{{"type":"{base}in-progress","operation":"5f1c"}}"#)).unwrap();
        assert_eq!(problem.meaning(), Some(Meaning::InProgress), "{base}");
        assert_eq!(problem.operation.as_deref(), Some("5f1c"));
    }
}

#[test]
fn c_02_other_documents_are_the_answer_of_the_service() {
    for body in ["", "[]", "{}", r#"{"type":7}"#, r#"{"type":"https://shop.example/out-of-stock"}"#] {
        assert_eq!(document(body), None, "{body}");
    }
    let json = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    assert_eq!(Problem::of(&json, br#"{"type":"uncertain"}"#), None);
}

#[test]
fn c_02_a_refusal_in_another_format_is_known_by_its_link() {
    let response = Code::Uncertain.response(None, "lost");
    let mut headers = response.headers().clone();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    assert_eq!(Problem::of(&headers, b"lost").unwrap().code(), "uncertain");

    let page = "<https://shop.example/next>; rel=next, <https://hapax.dev/errors/draining>; rel=describedby";
    let headers = HeaderMap::from_iter([(LINK, HeaderValue::from_static(page))]);
    assert_eq!(Problem::of(&headers, b"later").unwrap().code(), "draining");

    let page = HeaderValue::from_static("<https://other.example/errors/uncertain>; rel=\"describedby\"");
    assert_eq!(Problem::of(&HeaderMap::from_iter([(LINK, page)]), b""), None);
}

#[test]
fn members_of_another_type_are_ignored() {
    let problem = document(r#"{"type":"x/uncertain","title":1,"detail":"lost"}"#).unwrap();
    assert_eq!(problem.to_string(), "uncertain: lost");
}

#[test]
fn c_02_only_a_type_of_hapax_says_that_nothing_was_executed() {
    assert!(document(r#"{"type":"https://hapax.dev/errors/overloaded"}"#).unwrap().is_own);
    let foreign = r#"{"type":"https://shop.example/overloaded"}"#;
    assert!(!document(foreign).unwrap().is_own);

    let mut headers = Code::Overloaded.response(None, "").headers().clone();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    assert!(Problem::of(&headers, foreign.as_bytes()).unwrap().is_own, "a deployment with a base of its own");
    assert!(!Problem::of(&headers, foreign.replace("overloaded", "draining").as_bytes()).unwrap().is_own);
}
