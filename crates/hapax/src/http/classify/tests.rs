use super::*;
use crate::http::problem::Code;

fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap()
}

fn parts(number: u16, headers: &[(&'static str, &str)]) -> Parts {
    let mut builder = http::Response::builder().status(number);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn check(outcomes: &Outcomes, outcome: Outcome, statuses: &[u16]) {
    for number in statuses {
        assert_eq!(outcomes.of(status(*number)), outcome, "{number}");
    }
}

#[test]
fn x_11_the_default_table_pins_responses_and_releases_retryable_ones() {
    let table = Outcomes::default();
    check(&table, Outcome::Pin, &[200, 201, 202, 204, 299, 300, 301, 302, 303, 304]);
    check(&table, Outcome::Pin, &[400, 402, 404, 405, 409, 410, 413, 415, 418, 422, 424, 431, 451, 499]);
    check(&table, Outcome::Release, &[307, 308, 401, 403, 407, 408, 412, 421, 423, 425, 428, 429]);
    check(&table, Outcome::Release, &[500, 501, 503, 505, 599]);
}

#[test]
fn x_11_a_gateway_status_does_not_release_the_key() {
    let tables = [
        (Outcomes::default(), Outcome::Uncertain),
        (Outcomes::success_only(), Outcome::Uncertain),
        (Outcomes::oasis(), Outcome::Uncertain),
        (Outcomes::stripe_v1(), Outcome::Pin),
        (Outcomes::adyen(), Outcome::Pin),
    ];
    for (mut table, outcome) in tables {
        check(&table, outcome, &[502, 504]);
        table.set("5xx".parse().unwrap(), Outcome::Release);
        check(&table, Outcome::Release, &[502, 504]);
    }
}

#[test]
fn x_11_an_unknown_status_counts_as_a_server_error() {
    let mut table = Outcomes::default();
    check(&table, Outcome::Release, &[600, 999]);
    table.set(StatusSet::Class(5), Outcome::Pin);
    check(&table, Outcome::Pin, &[600, 999]);
}

#[test]
fn r_07_an_interim_response_is_never_recorded() {
    for mut table in [Outcomes::default(), Outcomes::stripe_v1(), Outcomes::oasis()] {
        table.set(StatusSet::One(status(101)), Outcome::Pin);
        check(&table, Outcome::Release, &[100, 101, 103, 199]);
    }
}

#[test]
fn x_11_the_tables_of_the_dialects() {
    check(&Outcomes::stripe_v1(), Outcome::Pin, &[200, 302, 307, 400, 403, 404, 500, 503]);
    check(&Outcomes::stripe_v1(), Outcome::Release, &[401, 429]);
    check(&Outcomes::success_only(), Outcome::Pin, &[200, 201, 299]);
    check(&Outcomes::success_only(), Outcome::Release, &[300, 303, 400, 404, 422, 500, 503]);
    check(&Outcomes::oasis(), Outcome::Pin, &[200, 400, 401, 412, 429]);
    check(&Outcomes::oasis(), Outcome::Release, &[500, 503, 307]);
    check(&Outcomes::adyen(), Outcome::Pin, &[200, 422, 500, 503]);
    check(&Outcomes::adyen(), Outcome::Release, &[401, 429]);
}

#[test]
fn x_11_the_later_call_overrides() {
    let mut table = Outcomes::default();
    table.set("5xx".parse().unwrap(), Outcome::Uncertain);
    table.set("503".parse().unwrap(), Outcome::Release);
    table.set("404".parse().unwrap(), Outcome::Release);
    check(&table, Outcome::Uncertain, &[500, 502, 504]);
    check(&table, Outcome::Release, &[503, 404]);
    check(&table, Outcome::Pin, &[200, 403 - 1]);
}

#[test]
fn x_11_an_invalid_status_is_refused_with_its_text() {
    for good in ["200", "404", "599", "2xx", "5XX"] {
        let set: StatusSet = good.parse().unwrap();
        assert_eq!(set.to_string(), good.to_lowercase());
    }
    for bad in
        ["", "2", "20", "2000", "2x", "x2x", "xx", "1xx", "101", "6xx", "600", "0xx", "-20", "2xx ", "٢xx"]
    {
        let error = bad.parse::<StatusSet>().unwrap_err();
        assert!(error.to_string().starts_with(&format!("{bad:?} is neither a status")), "{error}");
    }
    let long = "9".repeat(5000).parse::<StatusSet>().unwrap_err();
    assert!(long.to_string().len() < 200);
}

#[test]
fn e_06_the_published_table_rebuilds_the_table() {
    for table in [
        Outcomes::default(),
        Outcomes::stripe_v1(),
        Outcomes::adyen(),
        Outcomes::success_only(),
        Outcomes::oasis(),
    ] {
        let mut made = Outcomes::all(Outcome::Uncertain);
        for (which, outcome) in table.published() {
            made.set(which, outcome);
        }
        for number in 200..600 {
            assert_eq!(made.of(status(number)), table.of(status(number)), "{number}");
        }
    }
    assert_eq!(
        format!("{:?}", Outcomes::stripe_v1()),
        r#"{"2xx": "pin", "3xx": "pin", "4xx": "pin", "401": "release", "429": "release", "5xx": "pin"}"#
    );
}

#[test]
fn x_09_the_origin_overrules_the_table() {
    let table = Outcomes::default();
    for (number, word, outcome) in [
        (503, "pin", Outcome::Pin),
        (200, "release", Outcome::Release),
        (200, "Uncertain", Outcome::Uncertain),
        (503, " PIN ", Outcome::Pin),
    ] {
        assert_eq!(
            classify_response(&table, &parts(number, &[("idempotency-outcome", word)])),
            outcome,
            "{word}"
        );
    }
    let same = parts(503, &[("idempotency-outcome", "pin"), ("idempotency-outcome", "PIN")]);
    assert_eq!(classify_response(&table, &same), Outcome::Pin);
}

#[test]
fn x_09_an_invalid_override_does_not_release_the_key() {
    let table = Outcomes::default();
    for word in ["", "pinned", "pin, release", "true", "\u{fc}"] {
        let header = [("idempotency-outcome", word)];
        assert_eq!(classify_response(&table, &parts(200, &header)), Outcome::Pin, "{word}");
        assert_eq!(classify_response(&table, &parts(503, &header)), Outcome::Uncertain, "{word}");
    }
    let both = [("idempotency-outcome", "release"), ("idempotency-outcome", "pin")];
    assert_eq!(classify_response(&table, &parts(503, &both)), Outcome::Uncertain);
}

#[test]
fn x_05_the_refusal_of_another_layer_is_not_recorded() {
    let table = Outcomes::stripe_v1();
    let outcome_of = |status: u16, code: Code, further: &[(&'static str, &'static str)]| {
        let refusal = code.response(Some(StatusCode::from_u16(status).unwrap()), "why").into_parts().0;
        let mut response = parts(status, further);
        response.headers.extend(refusal.headers);
        classify_response(&table, &response)
    };
    for code in Code::ALL {
        let expected = match code {
            Code::Uncertain => Outcome::Uncertain,
            Code::ResultUnavailable => Outcome::Pin,
            _ => Outcome::Release,
        };
        assert_eq!(outcome_of(409, code, &[]), expected, "{code}");
    }
    assert_eq!(outcome_of(504, Code::InProgress, &[]), Outcome::Uncertain);
    assert_eq!(outcome_of(409, Code::InProgress, &[("idempotency-outcome", "pin")]), Outcome::Pin);
    // Independent of the body's format.
    assert_eq!(outcome_of(409, Code::InProgress, &[("content-type", "text/plain")]), Outcome::Release);
    for headers in [
        [("content-type", "application/problem+json"), ("link", "<https://hapax.dev/errors/in-progress>")],
        [
            ("content-type", "application/problem+json"),
            ("link", "<https://hapax.dev/errors/other>; rel=\"describedby\""),
        ],
        [
            ("content-type", "application/problem+json"),
            ("link", "<https://api.test/in-progress>; rel=\"describedby\""),
        ],
    ] {
        assert_eq!(classify_response(&table, &parts(409, &headers)), Outcome::Pin, "{headers:?}");
    }
}

#[test]
fn x_11_the_override_of_the_handler_comes_first() {
    let mut response = parts(503, &[("idempotency-outcome", "release")]);
    response.extensions.insert(Outcome::Pin);
    assert_eq!(classify_response(&Outcomes::default(), &response), Outcome::Pin);
}

#[test]
fn p_01_adyen_s_transient_errors_release() {
    let transient = [("transient-error", "true")];
    assert_eq!(classify_response(&Outcomes::adyen(), &parts(500, &transient)), Outcome::Release);
    assert_eq!(
        classify_response(&Outcomes::adyen(), &parts(500, &[("transient-error", "false")])),
        Outcome::Pin
    );
    assert_eq!(classify_response(&Outcomes::stripe_v1(), &parts(500, &transient)), Outcome::Pin);
    let overridden = [("transient-error", "true"), ("idempotency-outcome", "pin")];
    assert_eq!(classify_response(&Outcomes::adyen(), &parts(500, &overridden)), Outcome::Pin);
}

#[test]
fn errors_begin_at_400() {
    for (number, expected) in [(200, Class::Success), (303, Class::Success), (399, Class::Success)] {
        assert_eq!(class(status(number)), expected);
    }
    for number in [400, 422, 500, 999] {
        assert_eq!(class(status(number)), Class::Error);
    }
}

#[test]
fn t_05_graphql_errors_without_data_release() {
    for body in [
        r#"{"errors":[{"message":"no"}]}"#,
        r#"{"data":null,"errors":[{"message":"no","path":["a",1]}],"extensions":{}}"#,
    ] {
        assert_eq!(graphql(body.as_bytes()), Some(Outcome::Release), "{body}");
    }
    for body in [
        r#"{"data":{"a":1}}"#,
        r#"{"data":{"a":null},"errors":[{"message":"partly"}]}"#,
        r#"{"data":null,"errors":[]}"#,
        r#"{"data":null,"errors":null}"#,
        r#"{"data":null}"#,
        r#"[{"errors":[{}]}]"#,
        r#"{"errors":"text"}"#,
        r#"{"errors":[{}]"#,
        "",
        "null",
    ] {
        assert_eq!(graphql(body.as_bytes()), None, "{body}");
    }
    let deep = format!(r#"{{"errors":[{}{}]}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(graphql(deep.as_bytes()), Some(Outcome::Release));
}
