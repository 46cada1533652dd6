use super::*;

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> WireResponse {
    let headers =
        headers.iter().map(|(name, value)| ((*name).into(), Bytes::from((*value).to_owned()))).collect();
    WireResponse { status, headers, body: Bytes::from(body.to_owned()), ..WireResponse::default() }
}

fn expect(toml: &str) -> Expect {
    toml::from_str(toml).expect("an expectation")
}

fn meets(toml: &str, answer: &WireResponse) -> bool {
    let earlier = self::answer(201, &[("X-Kept", "1"), ("Date", "then")], "first");
    let expect = expect(toml);
    let earlier = expect.same_as.as_ref().map(|_| &earlier);
    Comparison { expect: &expect, marker: "X-Idempotent-Replayed", earlier, executions: Vec::new() }
        .differences(answer)
        .is_empty()
}

#[test]
fn each_expectation_is_checked() {
    let plain = || answer(201, &[], "order 1");
    let with = |name: &str, value: &str| answer(201, &[(name, value)], "order 1");
    let problem = |status, body: &str| answer(status, &[("Content-Type", "application/problem+json")], body);
    let check = |toml: &str, met: WireResponse, unmet: WireResponse| {
        assert!(meets(toml, &met), "{toml}: {met:?}");
        assert!(!meets(toml, &unmet), "{toml}: {unmet:?}");
    };
    check("status = 201", plain(), answer(200, &[], "order 1"));
    check("status_in = [201, 409]", plain(), answer(500, &[], ""));
    check("replayed = true", with("x-idempotent-replayed", "true"), with("x-idempotent-replayed", "false"));
    check("replayed = false", plain(), with("X-Idempotent-Replayed", "true"));
    check("has = ['Link']", with("link", "</a>"), plain());
    check("lacks = ['Link']", plain(), with("link", "</a>"));
    check("headers = [['Link', '</a>']]", with("link", "</a>"), with("link", "</b>"));
    let twice = answer(201, &[("Link", "</a>"), ("Link", "</a>")], "");
    check("headers = [['Link', '</a>'], ['Link', '</a>']]", twice, with("Link", "</a>"));
    check("body = 'order 1'", plain(), answer(201, &[], "order 2"));
    check("hides = ['secret']", plain(), with("X-A", "a secret"));
    check("hides = ['secret']", plain(), answer(201, &[], "a secret"));
    check("retry_after = true", with("retry-after", "2"), with("retry-after", "soon"));
    check("retry_after = false", plain(), with("retry-after", "2"));
    check("grpc_status = 10", with("grpc-status", "10"), with("grpc-status", "1"));
    check("continued = true", WireResponse { continued: true, ..plain() }, plain());
    check("cut = true", WireResponse { cut: true, ..plain() }, plain());
    check("", plain(), WireResponse { cut: true, ..plain() });
    let trailing =
        |value: &str| WireResponse { trailers: vec![("a".into(), value.to_owned().into())], ..plain() };
    check("trailers = [['A', '1']]", trailing("1"), trailing("2"));
    check("trailers = []", plain(), trailing("1"));
    check(
        "grpc_status = 0",
        WireResponse { trailers: vec![("grpc-status".into(), "0".into())], ..plain() },
        plain(),
    );
    let reused = r#"{"type":"https://x/errors/key-reused","status":422,"retryable":false}"#;
    check("problem = 'key-reused'", problem(422, reused), answer(422, &[], reused));
    check("problem = 'key-reused'", problem(422, reused), problem(400, reused));
    check("problem = 'key-reused'", problem(422, reused), problem(422, &reused.replace("reused", "invalid")));
    check(
        "members = { retryable = false }",
        problem(422, reused),
        problem(422, &reused.replace("false", "true")),
    );
    check("has_members = ['retryable']", problem(422, reused), problem(422, "{}"));
    let same =
        |status, kept: &str, body| answer(status, &[("x-kept", kept), ("Date", "now"), ("Age", "1")], body);
    for unmet in [same(200, "1", "first"), same(201, "2", "first"), same(201, "1", "second")] {
        check("same_as = 'x'", same(201, "1", "first"), unmet);
    }
}

#[test]
fn expectations_of_the_origin_are_checked() {
    let execution = || Execution {
        method: http::Method::POST,
        uri: http::Uri::from_static("/orders?a=1"),
        headers: [(http::header::LINK, http::HeaderValue::from_static("</a>"))].into_iter().collect(),
        body: Some("content".into()),
    };
    let check = |toml: &str, holds: bool| {
        let expect = expect(toml);
        let comparison =
            Comparison { expect: &expect, marker: "", earlier: None, executions: vec![execution()] };
        assert_eq!(comparison.differences_at_origin().is_empty(), holds, "{toml}");
    };
    check("runs = 1", true);
    check("runs = 0", false);
    for (met, unmet) in [
        ("method = 'POST'", "method = 'PUT'"),
        ("path = '/orders?a=1'", "path = '/orders'"),
        ("has = ['Link']", "has = ['Via']"),
        ("lacks = ['Via']", "lacks = ['Link']"),
        ("headers = [['Link', '</a>']]", "headers = [['Link', '</b>']]"),
        ("body = 'content'", "body = 'other'"),
    ] {
        check(&format!("seen = {{ {met} }}"), true);
        check(&format!("seen = {{ {unmet} }}"), false);
    }
}
