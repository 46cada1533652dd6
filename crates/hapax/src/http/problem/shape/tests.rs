use hapax_core::{Key, Scope, ScopedKey};

use super::*;
use crate::http::problem::RefusalRules;

fn response_in(shape: RefusalShape, problem: &Problem) -> http::Response<Bytes> {
    problem.response(&RefusalRules { shape, ..RefusalRules::default() })
}

fn reused() -> Problem {
    Problem::from(Code::KeyReused).about(ScopedKey::new(Scope::new("pay"), &Key::new("k").unwrap()).id)
}

fn json_of(shape: RefusalShape, problem: &Problem) -> Value {
    serde_json::from_slice(response_in(shape, problem).body()).unwrap()
}

const DETAIL: &str = "Another request was sent with this key before. This one was not executed.";

#[test]
fn e_01_stripes_shape_has_problem_details_and_its_error() {
    let (plain, stripe) = (reused(), json_of(RefusalShapeName::Stripe.into(), &reused()));
    let mut problem = json_of(RefusalShape::default(), &plain);
    problem["error"] = json!({
        "type": "idempotency_error", "code": "key-reused", "message": DETAIL,
        "doc_url": "https://hapax.dev/errors/key-reused",
    });
    assert_eq!(stripe, problem);
    let types: Vec<_> =
        Code::ALL.into_iter().filter(|code| stripe_type(*code) == "idempotency_error").collect();
    assert_eq!(
        types,
        [Code::KeyExpired, Code::KeyReused, Code::InProgress, Code::Uncertain, Code::ResultUnavailable]
    );
}

#[test]
fn e_01_googles_shape_is_its_error_model() {
    let operation = reused().reference.unwrap().to_string();
    assert_eq!(
        json_of(RefusalShapeName::Google.into(), &reused()),
        json!({ "error": {
            "code": 422, "message": DETAIL, "status": "FAILED_PRECONDITION",
            "details": [{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "KEY_REUSED", "domain": "hapax.dev",
                "metadata": { "code": "key-reused", "operation": operation, "retry": "false" },
            }],
        } })
    );
}

#[test]
fn e_01_json_apis_shape_is_a_list_of_errors() {
    assert_eq!(
        json_of(RefusalShapeName::JsonApi.into(), &Problem::from(Code::InProgress)),
        json!({ "errors": [{
            "status": "409", "code": "in-progress", "title": Code::InProgress.title(),
            "detail": Code::InProgress.detail(), "links": { "type": "https://hapax.dev/errors/in-progress" },
            "meta": { "retry": true },
        }] })
    );
}

#[test]
fn e_01_plain_text_has_a_line_for_each_field() {
    let response = response_in(RefusalShapeName::Plain.into(), &Problem::of(Code::InProgress, "wait"));
    let expected = "The operation is in progress: wait\ncode: in-progress\nretry: true\n";
    assert_eq!(response.body(), expected);
}

#[test]
fn e_01_header_fields_are_the_same_in_every_format() {
    for name in RefusalShapeName::ALL {
        let shape = RefusalShape::from(name);
        let response = response_in(shape.clone(), &reused());
        let headers = response.headers();
        assert_eq!(headers["content-type"], shape.media_type());
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers["content-language"], "en");
        assert_eq!(headers["x-should-retry"], "false");
        assert_eq!(headers["link"], "<https://hapax.dev/errors/key-reused>; rel=\"describedby\"");
        assert_eq!(crate::http::problem::refused_with(headers), Some(Code::KeyReused), "{name:?}");
        assert_eq!(name.name().parse(), Ok(name));
    }
}

#[test]
fn e_01_a_template_field_keeps_the_type_of_its_value() {
    let body = json!({
        "status": "{status}", "words": "{status:text}", "retry": "{retry}", "both": "{code} ({status})",
        "kept": [1, null, "{operation}", "{ code }", "{", "a {"], "id": "{operation}", "op": "op {operation}",
    });
    let shape = RefusalShape::template("application/json", body).unwrap();
    assert_eq!(
        json_of(shape, &Problem::from(Code::InProgress)),
        json!({
            "status": 409, "words": "409", "retry": true, "both": "in-progress (409)",
            "kept": [1, null, "{ code }", "{", "a {"],
        })
    );
    let text = RefusalShape::template("text/html", json!("<p>{detail}</p>\n<p>{operation}</p>\n")).unwrap();
    assert_eq!(response_in(text, &Problem::of(Code::InProgress, "wait")).body(), "<p>wait</p>\n");
}

#[test]
fn e_01_an_invalid_template_is_refused_with_the_known_fields() {
    let refused =
        |media_type: &str, body: Value| RefusalShape::template(media_type, body).unwrap_err().to_string();
    assert!(
        refused("application/json", json!({ "a": ["{kode}"] }))
            .contains("\"kode\"; the fields are code, title")
    );
    for media_type in ["", "json", "a/", "/b", "a b/c", "application/json\n", "a/b c"] {
        assert!(refused(media_type, json!("")).contains("application/json"), "{media_type:?}");
    }
    assert!("xml".parse::<RefusalShapeName>().unwrap_err().to_string().contains("problem, stripe, google"));
    assert!(RefusalShape::template("text/plain; charset=utf-8", json!("{code}")).is_ok());
}
