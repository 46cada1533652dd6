use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

fn document(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

fn response(problem: &Problem) -> Response<Bytes> {
    problem.response(&RefusalRules::default())
}

#[test]
fn e_01_a_refusal_is_a_problem_document() {
    let id = RecordId::from_bytes([0xab; 32]);
    let problem = Problem { reference: Some(id), ..Problem::from(Code::InProgress) };
    let response = response(&problem);
    assert_eq!(response.status(), StatusCode::CONFLICT);
    let hex = "ab".repeat(32);
    assert_eq!(
        document(&response),
        json!({
            "type": "https://hapax.dev/errors/in-progress",
            "title": "The operation is in progress",
            "status": 409,
            "detail": "An earlier request with this key is still running. \
                       Send it again with the same key for its response.",
            "instance": format!("urn:hapax:record:{hex}"),
            "retryable": true,
            "retry_with_same_key": true,
            "safe_new_key": false,
            "operation": hex,
        })
    );
    for (name, value) in [
        ("content-type", "application/problem+json"),
        ("content-language", "en"),
        ("cache-control", "no-store"),
        ("link", "<https://hapax.dev/errors/in-progress>; rel=\"describedby\""),
        ("retry-after", "1"),
        ("x-should-retry", "true"),
    ] {
        assert_eq!(response.headers()[name], value, "{name}");
    }
}

#[test]
fn e_01_any_text_is_escaped_in_the_document() {
    let detail = "quote \" back \\ line \n zero \0 \u{2028} \u{1f600}";
    let problem = Problem { detail: detail.into(), ..Problem::from(Code::KeyInvalid) };
    let rules = RefusalRules { type_base: "bad\n\"base/".into(), ..RefusalRules::default() };
    let response = problem.response(&rules);
    assert_eq!(document(&response)["detail"], detail);
    assert_eq!(document(&response)["type"], "bad\n\"base/key-invalid");
    assert!(!response.headers().contains_key(LINK), "a field cannot hold a line break");
}

#[test]
fn e_02_codes_and_statuses() {
    let expected = [
        ("key-missing", 400),
        ("key-invalid", 400),
        ("key-expired", 400),
        ("key-reused", 422),
        ("in-progress", 409),
        ("uncertain", 409),
        ("result-unavailable", 409),
        ("too-large", 413),
        ("rate-limited", 429),
        ("store-unavailable", 503),
        ("upstream-unavailable", 502),
        ("draining", 503),
        ("overloaded", 503),
        ("principal-missing", 400),
        ("too-early", 425),
        ("digest-mismatch", 400),
        ("body-incomplete", 400),
        ("coding-unsupported", 415),
        ("signature-invalid", 401),
        ("not-repeatable", 501),
    ];
    assert_eq!(Code::ALL.map(|code| (code.name(), code.status().as_u16())), expected);
    let titles: BTreeSet<_> = Code::ALL.map(Code::title).into();
    assert_eq!(titles.len(), Code::ALL.len(), "titles differ");
}

#[test]
fn e_02_every_code_is_the_index_of_its_row() {
    for (number, code) in Code::ALL.into_iter().enumerate() {
        assert_eq!(code as usize, number);
        assert_eq!(Code::from_name(code.name()), Some(code));
        assert_eq!(code.to_string(), code.name());
    }
    assert_eq!(Code::from_name("key"), None);
}

#[test]
fn e_03_every_code_has_consistent_retry_advice() {
    let named = |holds: fn(Code) -> bool| -> Vec<_> {
        Code::ALL.into_iter().filter(|code| holds(*code)).map(Code::name).collect()
    };
    assert_eq!(
        named(Code::retryable),
        [
            "in-progress",
            "rate-limited",
            "store-unavailable",
            "upstream-unavailable",
            "draining",
            "overloaded",
            "too-early",
            "body-incomplete",
        ]
    );
    assert_eq!(named(Code::safe_new_key), ["key-missing", "key-invalid"]);
    // Neither the same key nor another one: the result must be found out first, or no retry helps.
    assert_eq!(
        named(|code| !code.retry_with_same_key() && !code.safe_new_key()),
        ["key-expired", "key-reused", "result-unavailable", "not-repeatable"]
    );
    for code in Code::ALL {
        assert!(!(code.retryable() && code.safe_new_key()), "{code}: a retry carries its key");
    }
}

#[test]
fn e_03_a_refusal_without_a_record_names_none() {
    let document = document(&response(&Problem::from(Code::KeyMissing)));
    assert_eq!(document.get("instance"), None);
    assert_eq!(document.get("operation"), None);
}

#[test]
fn e_04_another_status_keeps_the_type() {
    let statuses = vec![
        (Code::KeyReused, StatusCode::BAD_REQUEST),
        (Code::InProgress, StatusCode::LOCKED),
        (Code::KeyReused, StatusCode::CONFLICT),
    ];
    let rules = RefusalRules { statuses, ..RefusalRules::default() };
    let reused = Problem::from(Code::KeyReused).response(&rules);
    assert_eq!(reused.status(), StatusCode::CONFLICT, "the later call overrides");
    assert_eq!(document(&reused)["status"], 409);
    assert_eq!(document(&reused)["type"], "https://hapax.dev/errors/key-reused");
    assert_eq!(Problem::from(Code::Uncertain).response(&rules).status(), StatusCode::CONFLICT);

    let status = Some(StatusCode::GATEWAY_TIMEOUT);
    let late = Problem { status, ..Problem::from(Code::InProgress) }.response(&rules);
    assert_eq!((late.status(), &document(&late)["status"]), (StatusCode::GATEWAY_TIMEOUT, &json!(504)));
}

#[test]
fn e_05_retry_after_is_whole_seconds_rounded_up() {
    let check = |code, wait: Option<Duration>, expected: Option<&str>| {
        let response = response(&Problem { retry_after: wait, ..Problem::from(code) });
        let value = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap());
        assert_eq!(value, expected, "{code} {wait:?}");
    };
    let ms = |ms| Some(Duration::from_millis(ms));
    check(Code::InProgress, ms(0), Some("1"));
    check(Code::InProgress, ms(1), Some("1"));
    check(Code::InProgress, ms(1000), Some("1"));
    check(Code::InProgress, ms(1001), Some("2"));
    check(Code::RateLimited, ms(59_999), Some("60"));
    check(Code::StoreUnavailable, None, Some("1"));
    check(Code::StoreUnavailable, Some(Duration::MAX), Some("3600"));
    check(Code::Uncertain, ms(5000), None);
    check(Code::KeyReused, None, None);
}

#[test]
fn e_05_hint_fields_state_whether_to_retry() {
    let hints = ["x-should-retry", "stripe-should-retry"].map(HeaderName::from_static).to_vec();
    let rules = RefusalRules { hints, ..RefusalRules::default() };
    for (code, hint) in [
        (Code::InProgress, "true"),
        (Code::StoreUnavailable, "true"),
        (Code::KeyReused, "false"),
        (Code::Uncertain, "false"),
        (Code::ResultUnavailable, "false"),
    ] {
        let headers = Problem::from(code).response(&rules).into_parts().0.headers;
        assert_eq!(headers["x-should-retry"], hint, "{code}");
        assert_eq!(headers["stripe-should-retry"], hint, "{code}");
    }
    let silent = RefusalRules { hints: Vec::new(), ..RefusalRules::default() };
    assert!(!Problem::from(Code::InProgress).response(&silent).headers().contains_key("x-should-retry"));
}

#[test]
fn e_05_some_statuses_are_retried_automatically() {
    let check = |statuses: &[u16], expected| {
        for status in statuses {
            assert_eq!(is_retried(StatusCode::from_u16(*status).unwrap()), expected, "{status}");
        }
    };
    check(&[408, 409, 425, 429, 500, 502, 503, 504, 599], true);
    check(&[200, 201, 303, 400, 401, 404, 410, 422, 424], false);
}
