use std::time::Duration;

use super::*;
use crate::http::problem::Code;

fn parts(status: u16, fields: &[(&'static str, &str)]) -> Parts {
    let mut builder = Response::builder().status(status);
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

/// By the default table.
fn outcome(parts: &Parts, trailers: Option<&HeaderMap>) -> Option<(Outcome, Class)> {
    super::outcome(&Outcomes::default(), parts, trailers)
}

fn trailers(status: &str) -> HeaderMap {
    HeaderMap::from_iter([(STATUS, HeaderValue::from_str(status).unwrap())])
}

const GRPC: (&str, &str) = ("content-type", "application/grpc+proto");

#[test]
fn t_05_grpc_is_detected_by_content_type() {
    for (content_type, expected) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("Application/gRPC;charset=x", true),
        ("application/grpc-web", false),
        ("application/grpc-web+proto", false),
        ("application/grp", false),
        ("application/json", false),
        ("", false),
    ] {
        let headers = parts(200, &[("content-type", content_type)]).headers;
        assert_eq!(is_grpc(headers.get(CONTENT_TYPE)), expected, "{content_type}");
    }
    assert!(!is_grpc(None));
}

#[test]
fn t_05_the_status_in_the_trailers_decides() {
    const PINNED: [usize; 8] = [0, 3, 5, 6, 9, 11, 12, 15];
    const UNCERTAIN: [usize; 3] = [1, 2, 4];
    for number in 0..=16 {
        let expected = (
            match number {
                _ if PINNED.contains(&number) => Outcome::Pin,
                _ if UNCERTAIN.contains(&number) => Outcome::Uncertain,
                _ => Outcome::Release,
            },
            if number == 0 { Class::Success } else { Class::Error },
        );
        let text = number.to_string();
        assert_eq!(outcome(&parts(200, &[GRPC]), Some(&trailers(&text))), Some(expected), "{number}");
        let trailers_only = parts(200, &[GRPC, ("grpc-status", &text)]);
        assert_eq!(outcome(&trailers_only, None), Some(expected), "{number} in the header");
    }
}

#[test]
fn t_05_a_response_without_a_status_is_uncertain() {
    let unknown = Some((Outcome::Uncertain, Class::Error));
    assert_eq!(outcome(&parts(200, &[GRPC]), None), unknown);
    assert_eq!(outcome(&parts(200, &[GRPC]), Some(&HeaderMap::new())), unknown);
    for status in ["17", "-1", "", "ok", "99999999999999999999999"] {
        assert_eq!(outcome(&parts(200, &[GRPC]), Some(&trailers(status))), unknown, "{status}");
    }
}

#[test]
fn t_05_other_responses_are_classified_by_http_status() {
    assert_eq!(outcome(&parts(200, &[("content-type", "text/html")]), Some(&trailers("0"))), None);
    assert_eq!(outcome(&parts(503, &[GRPC]), None), None);
    assert_eq!(outcome(&parts(200, &[]), None), None);
}

#[test]
fn x_09_the_origin_overrules_the_grpc_status() {
    let overridden = |word| parts(200, &[GRPC, ("idempotency-outcome", word)]);
    let check = |word, status, expected| {
        assert_eq!(
            outcome(&overridden(word), Some(&trailers(status))).unwrap().0,
            expected,
            "{word} {status}"
        );
    };
    check("pin", "14", Outcome::Pin);
    check("release", "0", Outcome::Release);
    check("?", "0", Outcome::Pin);
    check("?", "14", Outcome::Uncertain);
}

#[test]
fn x_11_a_route_sets_the_outcome_of_a_grpc_status() {
    let mut outcomes = Outcomes::default();
    outcomes.set("UNAVAILABLE".parse().unwrap(), Outcome::Uncertain);
    outcomes.set("not_found".parse().unwrap(), Outcome::Release);
    // HTTP statuses with the same numbers are unrelated.
    outcomes.set("5xx".parse().unwrap(), Outcome::Pin);
    let check = |status, expected| {
        let classified = super::outcome(&outcomes, &parts(200, &[GRPC]), Some(&trailers(status)));
        assert_eq!(classified.unwrap().0, expected, "{status}");
    };
    check("14", Outcome::Uncertain);
    check("5", Outcome::Release);
    check("13", Outcome::Release);
    check("4", Outcome::Uncertain);
    assert!("UNAVAILABLE_".parse::<crate::http::StatusSet>().is_err());
}

#[test]
fn x_08_the_deadline_is_removed_from_grpc_calls_only() {
    for (content_type, is_left) in [("application/grpc+proto", false), ("application/json", true)] {
        let fields = [("content-type", content_type), ("grpc-timeout", "1S"), ("te", "trailers")];
        let mut headers = parts(200, &fields).headers;
        lift_deadline(&mut headers);
        assert_eq!(headers.contains_key("grpc-timeout"), is_left, "{content_type}");
        assert_eq!(headers.len(), if is_left { 3 } else { 2 });
    }
}

#[test]
fn e_05_a_retry_is_forbidden_next_to_the_status() {
    let forbidden = HeaderMap::from_iter([(PUSHBACK, NEVER)]);
    let mut head = HeaderMap::new();
    let mut failed = trailers("14");
    assert!(is_failed(&head, Some(&failed)) && !is_failed(&head, Some(&trailers("0"))));
    assert!(forbid_retries(&mut head, Some(&mut failed)));
    assert_eq!((head.len(), failed.get(PUSHBACK)), (0, forbidden.get(PUSHBACK)));
    let mut trailers_only = trailers("4");
    assert!(is_failed(&trailers_only, None) && forbid_retries(&mut trailers_only, None));
    assert_eq!(trailers_only.get(PUSHBACK), forbidden.get(PUSHBACK));
    assert!(!is_failed(&head, None) && !forbid_retries(&mut head, Some(&mut HeaderMap::new())));
    assert!(head.is_empty());
}

fn refused(problem: &Problem) -> HeaderMap {
    let response = refusal(problem);
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.body().is_empty());
    assert_eq!(response.headers()["content-type"], "application/grpc");
    response.into_parts().0.headers
}

#[test]
fn p_02_refusals_as_grpc_statuses() {
    for (code, status, pushback) in [
        (Code::KeyMissing, "3", "-1"),
        (Code::KeyInvalid, "3", "-1"),
        (Code::KeyExpired, "9", "-1"),
        (Code::KeyReused, "9", "-1"),
        (Code::InProgress, "10", "1000"),
        (Code::Uncertain, "10", "-1"),
        (Code::ResultUnavailable, "9", "-1"),
        (Code::TooLarge, "8", "-1"),
        (Code::RateLimited, "8", "1000"),
        (Code::StoreUnavailable, "14", "1000"),
        (Code::Draining, "14", "1000"),
        (Code::PrincipalMissing, "16", "-1"),
        (Code::NotRepeatable, "12", "-1"),
    ] {
        let headers = refused(&Problem::from(code));
        assert_eq!(headers["grpc-status"], status, "{code}");
        assert_eq!(headers["grpc-retry-pushback-ms"], pushback, "{code}");
        assert!(headers["grpc-message"].to_str().unwrap().starts_with(&format!("{code}: ")), "{code}");
    }
}

#[test]
fn p_02_the_pushback_is_in_milliseconds() {
    let wait = Some(Duration::from_micros(2_500_900));
    let problem = Problem { retry_after: wait, ..Problem::from(Code::InProgress) };
    assert_eq!(refused(&problem)["grpc-retry-pushback-ms"], "2500");
}

#[test]
fn p_02_the_message_is_percent_encoded() {
    let detail = "50% \u{fc}ber\r\nx\u{7f}";
    let problem = Problem { detail: detail.into(), ..Problem::from(Code::KeyInvalid) };
    assert_eq!(refused(&problem)["grpc-message"], "key-invalid: 50%25 %C3%BCber%0D%0Ax%7F");
}
