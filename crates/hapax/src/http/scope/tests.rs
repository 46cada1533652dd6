use hapax_core::{Key, RecordId, Scope, ScopedKey};
use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;
use http::{Method, Request};

use super::{
    Anonymous, Endpoint, PathCase, Principal, PrincipalMissing, ScopeRules, is_http_operation, scope_of,
    warnings,
};

/// A JSON Web Token whose `sub` is `alice`, and another one of hers.
const ALICE: &str = "Bearer e30.eyJzdWIiOiJhbGljZSIsImV4cCI6MX0.c2ln";
const ALICE_RENEWED: &str = "Bearer e30.eyJzdWIiOiJhbGljZSIsImV4cCI6Mn0.c2ln";

type Lines<'a> = &'a [(&'static str, &'a str)];

fn request(uri: &str, lines: Lines<'_>) -> Parts {
    let mut request = Request::builder().method(Method::POST).uri(uri);
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[track_caller]
fn scope(rules: &ScopeRules, parts: &Parts) -> Scope {
    scope_of(rules, parts, parts.uri.path()).unwrap()
}

fn by(principal: Principal) -> ScopeRules {
    ScopeRules { principal, ..ScopeRules::default() }
}

fn id(scope: Scope) -> RecordId {
    ScopedKey::new(scope, &Key::new("one-key").unwrap()).id
}

#[test]
fn s_01_method_and_path_belong_to_the_scope() {
    let rules = ScopeRules { namespace: "shop".into(), ..ScopeRules::default() };
    let mut parts = request("/orders/7?a=b", &[("host", "a.example")]);
    assert_eq!(scope(&rules, &parts).to_string(), "shop/POST /orders/7");
    parts.method = Method::PUT;
    assert_eq!(scope(&rules, &parts).to_string(), "shop/PUT /orders/7");
    let sent = scope_of(&rules, &parts, "/nested/orders/7").unwrap();
    assert_eq!(sent.operation(), "PUT /nested/orders/7");
}

#[test]
fn s_01_one_slash_at_the_end_makes_no_other_operation_and_case_by_choice() {
    let operation = |rules: &ScopeRules, path: &str| scope(rules, &request(path, &[])).operation().to_owned();
    let exact = ScopeRules::default();
    assert_eq!(operation(&exact, "/orders/"), "POST /orders");
    assert_eq!(operation(&exact, "/"), "POST /");
    assert_eq!(operation(&exact, "/Orders"), "POST /Orders");
    let ignoring = ScopeRules { path_case: PathCase::Ignore, host: true, ..exact };
    assert_eq!(operation(&ignoring, "/Orders/A/"), "POST  /orders/a");
}

#[test]
fn s_01_hosts_are_kept_apart_where_asked_for() {
    let rules = ScopeRules { host: true, ..ScopeRules::default() };
    let cases: [(&str, Lines<'_>, &str); 7] = [
        ("/x", &[("host", "Shop.Example:443")], "POST shop.example:443 /x"),
        ("/X", &[("host", "shop.example")], "POST shop.example /X"),
        ("https://Shop.example/x", &[("host", "other")], "POST shop.example /x"),
        ("https://me:secret@shop.example:8443/x", &[], "POST shop.example:8443 /x"),
        ("http://[2001:DB8::1]:80/x", &[], "POST [2001:db8::1]:80 /x"),
        ("/x", &[], "POST  /x"),
        ("/x", &[("host", "a"), ("host", "b")], "POST a,b /x"),
    ];
    for (uri, lines, operation) in cases {
        assert_eq!(scope(&rules, &request(uri, lines)).operation(), operation);
    }
}

#[test]
fn s_01_without_endpoints_in_the_scope_a_key_is_unique_per_caller() {
    let rules = ScopeRules { endpoint: Endpoint::Fingerprint, ..ScopeRules::default() };
    let one = scope(&rules, &request("/a", &[("host", "h")]));
    let mut parts = request("/b", &[("host", "h")]);
    parts.method = Method::PATCH;
    assert_eq!(one, scope(&rules, &parts));
    assert_ne!(one, scope(&rules, &request("/a", &[("authorization", "x")])));
    let rules = ScopeRules { host: true, ..rules };
    assert_eq!(scope(&rules, &parts).operation(), "http h");
}

#[test]
fn s_02_the_whole_authorization_tells_callers_apart_by_default() {
    let of = |lines: Lines<'_>| id(scope(&ScopeRules::default(), &request("/x", lines)));
    let requests = [
        vec![],
        vec![("authorization", "a")],
        vec![("authorization", "b")],
        vec![("authorization", "a"), ("authorization", "b")],
        vec![("authorization", "b"), ("authorization", "a")],
        vec![("authorization", "ab")],
        vec![("authorization", "a,b")],
        vec![("authorization", "a"), ("authorization", "b"), ("authorization", "c")],
    ];
    let ids: std::collections::HashSet<_> = requests.iter().map(|lines| of(lines)).collect();
    assert_eq!(ids.len(), requests.len());
    assert_eq!(of(&requests[3]), of(&requests[3]));
}

#[test]
fn s_02_people_find_a_caller_by_what_it_sent() {
    let found = scope(
        &by(Principal::Header(HeaderName::from_static("x-account"))),
        &request("/x", &[("x-account", "acme")]),
    );
    assert_eq!(found.principal_hash(), Scope::new("").principal("acme").principal_hash());
}

#[test]
fn s_02_a_claim_outlives_the_credential_and_odd_tokens_meet_nobody() {
    let rules = by(Principal::jwt_claim("sub"));
    let of = |value| id(scope(&rules, &request("/x", &[("authorization", value)])));
    assert_eq!(of(ALICE), of(ALICE_RENEWED));
    let default = ScopeRules::default();
    assert_ne!(
        scope(&default, &request("/x", &[("authorization", ALICE)])),
        scope(&default, &request("/x", &[("authorization", ALICE_RENEWED)]))
    );
    let strangers = ["Bearer x", "Bearer y", "alice", "Basic YWxpY2U6eA", "Bearer e30.e30.c2ln"];
    let mut ids: Vec<_> = strangers.into_iter().chain([ALICE]).map(of).collect();
    ids.push(id(scope(&rules, &request("/x", &[]))));
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn s_02_a_function_names_the_caller() {
    #[derive(Clone)]
    struct Account(&'static str);
    let rules = ScopeRules {
        anonymous: Anonymous::Refuse,
        ..by(Principal::extract(|parts| Some(parts.extensions.get::<Account>()?.0.into())))
    };
    let mut parts = request("/x", &[]);
    assert_eq!(scope_of(&rules, &parts, "/x"), Err(PrincipalMissing));
    parts.extensions.insert(Account("acme"));
    assert_eq!(scope(&rules, &parts).principal_hash(), Scope::new("").principal("acme").principal_hash());
    parts.extensions.insert(Account(""));
    assert_eq!(scope_of(&rules, &parts, "/x"), Err(PrincipalMissing));
}

#[test]
fn s_03_callers_without_a_principal_share_a_scope_or_are_refused() {
    let cases: [(Principal, Lines<'_>); 5] = [
        (Principal::default(), &[]),
        (Principal::default(), &[("authorization", "")]),
        (Principal::default(), &[("authorization", ""), ("authorization", "")]),
        (Principal::jwt_claim("sub"), &[]),
        (Principal::None, &[("authorization", "x")]),
    ];
    for (principal, lines) in cases {
        let parts = request("/x", lines);
        assert_eq!(scope(&by(principal.clone()), &parts).principal_hash(), None);
        let rules = ScopeRules { anonymous: Anonymous::Refuse, ..by(principal) };
        assert_eq!(scope_of(&rules, &parts, "/x"), Err(PrincipalMissing));
    }
    let rules = ScopeRules { anonymous: Anonymous::Refuse, ..ScopeRules::default() };
    assert!(scope_of(&rules, &request("/x", &[("authorization", "x")]), "/x").is_ok());
}

#[test]
fn s_02_s_03_what_is_unsafe_is_said_before_the_first_request() {
    let check = |principal: Principal, anonymous, words: &[&str]| {
        let said = warnings(&ScopeRules { anonymous, ..by(principal) });
        assert_eq!(said.len(), words.len(), "{said:?}");
        for (said, word) in said.iter().zip(words) {
            assert!(said.contains(word), "{said}");
        }
    };
    let account = || Principal::Header(HeaderName::from_static("x-account"));
    check(Principal::default(), Anonymous::Share, &["S-02", "callers without a principal share"]);
    check(Principal::default(), Anonymous::Refuse, &["S-02"]);
    check(Principal::Header(http::header::COOKIE), Anonymous::Refuse, &["S-02"]);
    check(account(), Anonymous::Share, &["callers without a principal share"]);
    check(account(), Anonymous::Refuse, &[]);
    check(Principal::None, Anonymous::Share, &["all callers share"]);
    check(Principal::None, Anonymous::Refuse, &["so is every key"]);
}

#[test]
fn s_05_equal_keys_of_two_callers_are_two_records() {
    let of = |account| {
        let rules = by(Principal::Header(HeaderName::from_static("x-account")));
        id(scope(&rules, &request("/x", &[("x-account", account)])))
    };
    assert_ne!(of("acme"), of("bolt"));
    assert_eq!(of("acme"), of("acme"));
}

#[test]
fn s_06_a_scope_shows_no_credential() {
    let shown = format!("{:?}", scope(&ScopeRules::default(), &request("/x", &[("authorization", ALICE)])));
    assert!(!shown.contains("eyJ") && !shown.contains("Bearer"), "{shown}");
}

#[test]
fn a_principal_is_written_as_it_is_read() {
    let written = ["header:authorization", "header:x-account", "jwt:sub", "jwt:https://a.example/t", "none"];
    for text in written.into_iter().chain(["jwt:/realm/tenant", "jwt:/~1odd"]) {
        assert_eq!(text.parse::<Principal>().unwrap().to_string(), text);
    }
    for text in ["", "header", "header:", "header:a b", "jwt", "jwt:", "jwt:/~", "None", "user:x"] {
        assert!(text.parse::<Principal>().is_err(), "{text}");
    }
    assert!(matches!("header:Authorization".parse(), Ok(Principal::Header(name)) if name == AUTHORIZATION));
}

#[test]
fn s_02_only_what_callers_may_invent_must_be_verified() {
    let check =
        |text: &str, must| assert_eq!(text.parse::<Principal>().unwrap().must_be_verified(), must, "{text}");
    check("header:authorization", false);
    check("header:x-account", true);
    check("jwt:sub", true);
    check("none", false);
}

#[test]
fn requests_are_told_from_functions_by_their_operation() {
    for operation in ["POST /orders", "M-SEARCH *", "POST shop.example:443 /x", "POST  /x", "http", "http h"]
    {
        assert!(is_http_operation(operation), "{operation}");
    }
    for operation in ["", "charge", "POST", "post /orders", "charge /orders", "POST orders", " /orders"] {
        assert!(!is_http_operation(operation), "{operation}");
    }
}
