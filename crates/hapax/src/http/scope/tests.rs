use hapax_core::{Key, RecordId, Scope, ScopedKey};
use http::header::{AUTHORIZATION, COOKIE, HeaderName};
use http::request::Parts;
use http::{Method, Request};

use super::{
    Anonymous, Credentials, Endpoint, PathCase, Principal, PrincipalMissing, ScopeRules, is_http_operation,
    scope_of, warnings,
};

/// A JSON Web Token whose `sub` is `alice`, and a renewed one.
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
    scope_of(rules, parts, parts.uri.path(), None).unwrap()
}

fn by(principal: Principal) -> ScopeRules {
    ScopeRules { principal, ..ScopeRules::default() }
}

fn id(scope: Scope) -> RecordId {
    ScopedKey::new(scope, &Key::new("one-key").unwrap()).id
}

#[test]
fn s_01_method_and_path_are_part_of_the_scope() {
    let rules = ScopeRules { namespace: "shop".into(), ..ScopeRules::default() };
    let mut parts = request("/orders/7?a=b", &[("host", "a.example")]);
    assert_eq!(scope(&rules, &parts).to_string(), "shop/POST /orders/7");
    parts.method = Method::PUT;
    assert_eq!(scope(&rules, &parts).to_string(), "shop/PUT /orders/7");
    let sent = scope_of(&rules, &parts, "/nested/orders/7", None).unwrap();
    assert_eq!(sent.operation(), "PUT /nested/orders/7");
}

#[test]
fn s_01_a_trailing_slash_does_not_count_and_case_is_an_option() {
    let operation = |rules: &ScopeRules, path: &str| scope(rules, &request(path, &[])).operation().to_owned();
    let exact = ScopeRules::default();
    assert_eq!(operation(&exact, "/orders/"), "POST /orders");
    assert_eq!(operation(&exact, "/"), "POST /");
    assert_eq!(operation(&exact, "/Orders"), "POST /Orders");
    let ignoring = ScopeRules { path_case: PathCase::Ignore, host: true, ..exact };
    assert_eq!(operation(&ignoring, "/Orders/A/"), "POST  /orders/a");
}

#[test]
fn s_01_the_host_counts_if_configured() {
    let rules = ScopeRules { host: true, ..ScopeRules::default() };
    let cases: [(&str, Lines<'_>, &str); 8] = [
        ("/x", &[("host", "Shop.Example:443")], "POST shop.example:443 /x"),
        ("/X", &[("host", "shop.example")], "POST shop.example /X"),
        ("https://Shop.example/x", &[("host", "other")], "POST shop.example /x"),
        ("https://me:secret@shop.example:8443/x", &[], "POST shop.example:8443 /x"),
        ("http://[2001:DB8::1]:80/x", &[], "POST [2001:db8::1]:80 /x"),
        ("/x", &[], "POST  /x"),
        ("/x", &[("host", "a"), ("host", "b")], "POST a,b /x"),
        // Not the operation of a derived key.
        ("/x", &[("host", "key:derived a")], "POST key:derived_a /x"),
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
fn s_02_callers_are_identified_by_authorization_by_default() {
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
fn s_02_callers_are_identified_by_every_credential_header_by_default() {
    let of = |lines: Lines<'_>| id(scope(&ScopeRules::default(), &request("/x", lines)));
    let names =
        ["authorization", "x-api-key", "api-key", "x-auth-token", "x-shopify-access-token", "x-other"];
    let mut requests: Vec<Vec<(&str, &str)>> = names.iter().map(|name| vec![(*name, "a")]).collect();
    requests.extend([
        vec![("x-api-key", "b")],
        vec![("x-api-key", "a"), ("x-api-key", "b")],
        vec![("x-api-key", "a"), ("api-key", "b")],
        vec![("x-api-key", "b"), ("api-key", "a")],
        vec![("authorization", "a"), ("x-api-key", "a")],
        vec![("authorization", "a"), ("x-api-key", "b")],
        vec![("authorization", "b"), ("x-api-key", "a")],
    ]);
    let ids: std::collections::HashSet<_> = requests.iter().map(|lines| of(lines)).collect();
    assert_eq!(ids.len(), requests.len());
    // An empty header and one without a credential do not count, and neither does the order of the fields.
    let (a, b) = (("x-api-key", "a"), ("api-key", "b"));
    assert_eq!(of(&[a, b]), of(&[b, a]));
    assert_eq!(of(&[a]), of(&[a, ("authorization", ""), ("x-other", "b"), ("cookie", "c=d")]));
}

#[test]
fn s_02_authorization_alone_is_hashed_unchanged() {
    let found = scope(&ScopeRules::default(), &request("/x", &[("authorization", "Bearer a")]));
    assert_eq!(found.principal_hash(), Scope::new("").principal("Bearer a").principal_hash());
    let header =
        scope(&by(Principal::Header(AUTHORIZATION)), &request("/x", &[("authorization", "Bearer a")]));
    assert_eq!(found, header);
}

#[test]
fn s_02_the_list_of_credential_headers_is_an_option() {
    let names = ["x-b", "x-a", "x-b"].map(HeaderName::from_static);
    let rules = ScopeRules { credentials: Credentials::new(names), ..ScopeRules::default() };
    let of = |lines: Lines<'_>| id(scope(&rules, &request("/x", lines)));
    assert_eq!(rules.credentials.names(), ["x-a", "x-b"]);
    assert_ne!(of(&[("x-a", "1")]), of(&[("x-a", "2")]));
    assert_ne!(of(&[("x-a", "1")]), of(&[("x-b", "1")]));
    assert_eq!(of(&[("authorization", "1")]), of(&[]), "it is not in the list");
}

#[test]
fn s_02_the_first_source_with_a_value_counts() {
    let texts = ["jwt:sub", "header:x-api-key", "cookie:sid"];
    let rules = by(Principal::first_of(texts.map(|text| text.parse().unwrap())));
    let of = |lines: Lines<'_>| id(scope(&rules, &request("/x", lines)));
    let (token, renewed) = (("authorization", ALICE), ("authorization", ALICE_RENEWED));
    let (key, cookie) = (("x-api-key", "k"), ("cookie", "a=b; sid=s"));
    assert_eq!(of(&[token]), of(&[renewed, key, cookie]));
    assert_eq!(of(&[key]), of(&[key, cookie]));
    assert_eq!(of(&[cookie]), of(&[("cookie", "sid=s"), ("x-api-key", "")]));
    let mut ids = vec![of(&[token]), of(&[key]), of(&[cookie]), of(&[("authorization", "Basic x")]), of(&[])];
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    // A source can be appended: callers identified by the first one keep their records.
    assert_eq!(of(&[token]), id(scope(&by(Principal::jwt_claim("sub")), &request("/x", &[token]))));
    let more = Principal::first_of([Principal::Credentials, Principal::cookie("sid")]);
    let known = [("x-api-key", "k")];
    assert_eq!(
        scope(&by(more), &request("/x", &known)),
        scope(&ScopeRules::default(), &request("/x", &known))
    );
}

#[test]
fn s_02_equal_values_of_different_sources_are_different_callers() {
    let source = |text: &str| text.parse::<Principal>().unwrap();
    let texts = ["header:x-account", "cookie:sid", "jwt:sub", "credentials"];
    let rules = by(Principal::first_of(texts.map(source)));
    let of = |lines: Lines<'_>| id(scope(&rules, &request("/x", lines)));
    let forged = "Bearer e30.eyJzdWIiOiJhY21lIn0.c2ln"; // sub: acme
    let mut ids = vec![
        of(&[("x-account", "acme")]),
        of(&[("cookie", "sid=acme")]),
        of(&[("authorization", forged)]),
        of(&[("authorization", "acme")]),
        of(&[("x-api-key", "acme")]),
    ];
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    // The value of a function may equal the encoding of another source.
    let of_cookie = scope(&rules, &request("/x", &[("cookie", "sid=acme")]));
    let written = [&b"\0\0\0\0\0\0\0\0s\0\0\0\0\0\0\0\ncookie:sid\0\0\0\0\0\0\0\x04acme"[..]].concat();
    assert_eq!(of_cookie.principal_hash(), Scope::new("").principal(&written).principal_hash());
    let odd = Principal::first_of([Principal::extract(move |_| Some(written.clone())), source("cookie:sid")]);
    assert_ne!(scope(&by(odd), &request("/x", &[])), of_cookie);
}

#[test]
fn s_02_a_cookie_is_found_by_its_name() {
    let rules = by(Principal::cookie("sid"));
    let of = |lines: Lines<'_>| scope(&rules, &request("/x", lines));
    let session = of(&[("cookie", "sid=one")]);
    assert_eq!(session.principal_hash(), Scope::new("").principal("one").principal_hash());
    for lines in [
        &[("cookie", "a=b; sid=one; c=d")][..],
        &[("cookie", "a=b"), ("cookie", "sid=one")],
        &[("cookie", " sid = one ;")],
        &[("cookie", "SID=two; xsid=two; sid; sid=; sid=one")],
    ] {
        assert_eq!(of(lines), session, "{lines:?}");
    }
    let several = of(&[("cookie", "sid=one; sid=two")]);
    assert_ne!(several, session);
    assert_ne!(several, of(&[("cookie", "sid=two; sid=one")]));
    assert_eq!(several, of(&[("cookie", "sid=one"), ("cookie", "sid=two")]));
    for lines in [&[][..], &[("cookie", "a=b")], &[("cookie", "sid")], &[("cookie", "sid=")]] {
        assert_eq!(of(lines).principal_hash(), None, "{lines:?}");
    }
}

#[test]
fn s_03_a_cookie_without_a_credential_is_refused_unless_named() {
    let missing = |principal: Principal, lines: Lines<'_>| {
        let refuse = ScopeRules { anonymous: Anonymous::Refuse, ..by(principal.clone()) };
        let parts = request("/x", lines);
        (scope_of(&by(principal), &parts, "/x", None).err(), scope_of(&refuse, &parts, "/x", None).err())
    };
    let (only, anonymous) = (Some(PrincipalMissing::OnlyCookie), Some(PrincipalMissing::Anonymous));
    let cookie = [("cookie", "theme=dark")];
    let default = Principal::default;
    assert_eq!(missing(default(), &cookie), (only, only));
    assert_eq!(missing(default(), &[]), (None, anonymous));
    assert_eq!(missing(default(), &[("cookie", "")]), (None, anonymous));
    assert_eq!(missing(default(), &[cookie[0], ("x-api-key", "k")]), (None, None));
    let first_of = |second| Principal::first_of([Principal::Credentials, second]);
    assert_eq!(missing(first_of(Principal::jwt_claim("sub")), &cookie), (only, only));
    let named = [
        Principal::cookie("sid"),
        first_of(Principal::cookie("sid")),
        Principal::None,
        Principal::Header(HeaderName::from_static("x-account")),
    ];
    for principal in named {
        assert_eq!(missing(principal, &cookie), (None, anonymous));
    }
    assert_eq!(missing(Principal::Header(COOKIE), &cookie), (None, None));
}

#[test]
fn s_02_a_caller_can_be_looked_up_by_its_credential() {
    let found = scope(
        &by(Principal::Header(HeaderName::from_static("x-account"))),
        &request("/x", &[("x-account", "acme")]),
    );
    assert_eq!(found.principal_hash(), Scope::new("").principal("acme").principal_hash());
}

#[test]
fn s_02_a_claim_is_stable_and_malformed_tokens_share_no_scope() {
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
    assert_eq!(scope_of(&rules, &parts, "/x", None), Err(PrincipalMissing::Anonymous));
    parts.extensions.insert(Account("acme"));
    assert_eq!(scope(&rules, &parts).principal_hash(), Scope::new("").principal("acme").principal_hash());
    parts.extensions.insert(Account(""));
    assert_eq!(scope_of(&rules, &parts, "/x", None), Err(PrincipalMissing::Anonymous));
}

#[test]
fn s_03_callers_without_a_principal_share_a_scope_or_are_refused() {
    let cases: [(Principal, Lines<'_>); 6] = [
        (Principal::default(), &[]),
        (Principal::default(), &[("authorization", "")]),
        (Principal::default(), &[("x-api-key", ""), ("x-account", "a")]),
        (Principal::default(), &[("authorization", ""), ("authorization", "")]),
        (Principal::jwt_claim("sub"), &[]),
        (Principal::None, &[("authorization", "x")]),
    ];
    for (principal, lines) in cases {
        let parts = request("/x", lines);
        assert_eq!(scope(&by(principal.clone()), &parts).principal_hash(), None);
        let rules = ScopeRules { anonymous: Anonymous::Refuse, ..by(principal) };
        assert_eq!(scope_of(&rules, &parts, "/x", None), Err(PrincipalMissing::Anonymous));
    }
    let rules = ScopeRules { anonymous: Anonymous::Refuse, ..ScopeRules::default() };
    assert!(scope_of(&rules, &request("/x", &[("authorization", "x")]), "/x", None).is_ok());
}

#[test]
fn s_02_s_03_unsafe_rules_have_warnings() {
    let check = |principal: Principal, anonymous, words: &[&str]| {
        let found = warnings(&ScopeRules { anonymous, ..by(principal) });
        assert_eq!(found.len(), words.len(), "{found:?}");
        for (found, word) in found.iter().zip(words) {
            assert!(found.contains(word), "{found}");
        }
    };
    let account = || Principal::Header(HeaderName::from_static("x-account"));
    check(Principal::default(), Anonymous::Share, &["S-02", "callers without a principal share"]);
    check(Principal::default(), Anonymous::Refuse, &["S-02"]);
    check(Principal::Header(http::header::COOKIE), Anonymous::Refuse, &["S-02"]);
    check(Principal::cookie("sid"), Anonymous::Refuse, &["S-02"]);
    check(Principal::first_of([account(), Principal::Credentials]), Anonymous::Refuse, &[]);
    check(account(), Anonymous::Share, &["callers without a principal share"]);
    check(account(), Anonymous::Refuse, &[]);
    check(Principal::None, Anonymous::Share, &["all callers share"]);
    check(Principal::None, Anonymous::Refuse, &["every key is refused"]);
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
fn a_principal_is_parsed_and_formatted() {
    let written = ["header:authorization", "header:x-account", "jwt:sub", "jwt:https://a.example/t", "none"];
    for text in written.into_iter().chain(["jwt:/realm/tenant", "jwt:/~1odd", "credentials", "cookie:Sid"]) {
        assert_eq!(text.parse::<Principal>().unwrap().to_string(), text);
    }
    let odd = ["cookie", "cookie:", "cookie:a b", "cookie:a=b", "cookie:a;b", "Credentials", "credentials:"];
    let texts = ["", "header", "header:", "header:a b", "jwt", "jwt:", "jwt:/~", "None", "user:x"];
    for text in texts.into_iter().chain(odd) {
        assert!(text.parse::<Principal>().is_err(), "{text}");
    }
    assert!(matches!("header:Authorization".parse(), Ok(Principal::Header(name)) if name == AUTHORIZATION));
}

#[test]
fn s_02_only_forgeable_values_must_be_verified() {
    let credentials = Credentials::new([HeaderName::from_static("x-own-key")]);
    let check = |text: &str, must| {
        let sources = text.split(',').map(|text| text.parse::<Principal>().unwrap());
        assert_eq!(Principal::first_of(sources).must_be_verified(&credentials), must, "{text}");
    };
    check("credentials", false);
    check("cookie:sid", false);
    for name in
        ["authorization", "x-api-key", "api-key", "x-auth-token", "x-shopify-access-token", "x-own-key"]
    {
        check(&format!("header:{name}"), false);
    }
    check("header:x-api-key,cookie:sid,credentials", false);
    check("header:x-api-key,jwt:sub", true);
    check("header:x-account", true);
    check("jwt:sub", true);
    check("none", false);
}

#[test]
fn http_operations_are_recognised_by_their_name() {
    for operation in ["POST /orders", "M-SEARCH *", "POST shop.example:443 /x", "POST  /x", "http", "http h"]
    {
        assert!(is_http_operation(operation), "{operation}");
    }
    for operation in ["", "charge", "POST", "post /orders", "charge /orders", "POST orders", " /orders"] {
        assert!(!is_http_operation(operation), "{operation}");
    }
}
