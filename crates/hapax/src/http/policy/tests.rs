use super::*;
use crate::http::settings::PrincipalNames;

#[test]
fn m_02_m_04_some_methods_are_never_covered() {
    let named = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT];
    let policy = HttpPolicy::default().methods(named.into_iter().chain([Method::DELETE]));
    assert_eq!(policy.methods, [Method::DELETE]);
}

#[test]
fn m_03_delete_is_covered_by_choice() {
    assert!(!HttpPolicy::default().methods.contains(&Method::DELETE));
    assert!(HttpPolicy::default().methods([Method::DELETE]).methods.contains(&Method::DELETE));
}

#[test]
fn r_01_the_key_is_echoed_in_the_header_that_holds_it() {
    let name = HeaderName::from_static("x-key");
    let before = HttpPolicy::default().echo_key(true).header(name.clone());
    let after = HttpPolicy::default().header(name.clone()).echo_key(true);
    assert_eq!((before.replay.echo_key, after.replay.echo_key), (Some(name.clone()), Some(name)));
}

#[test]
fn e_01_a_missing_key_is_asked_for_by_its_header() {
    let policy = HttpPolicy::default().header(HeaderName::from_static("x-key"));
    assert!(policy.key_missing().detail.contains("x-key"));
}

#[cfg(feature = "webhook")]
#[test]
fn p_03_webhooks_are_kept_longer_than_their_senders_retry() {
    let policy = HttpPolicy::default().webhook(Webhook::cloud_events());
    assert_eq!(policy.key, KeyMode::Required);
    assert!(policy.engine.retention > Duration::from_secs(4 * 24 * 3600));
    assert_eq!(policy.outcomes.of(StatusCode::OK), Outcome::Pin);
    assert_eq!(policy.outcomes.of(StatusCode::NOT_FOUND), Outcome::Release);
}

#[cfg(feature = "webhook")]
#[test]
fn p_03_a_credential_is_the_principal_of_a_webhook_only_by_choice() {
    let header = |name| Principal::Header(HeaderName::from_static(name));
    let hooks = |policy: HttpPolicy| policy.webhook(Webhook::cloud_events());
    for (policy, principal, warns) in [
        (hooks(HttpPolicy::default()), "none", false),
        (hooks(HttpPolicy::default().principal(header("x-api-key"))), "none", false),
        (hooks(HttpPolicy::default()).anonymous(Anonymous::Refuse), "none", true),
        (hooks(HttpPolicy::default()).principal(header("authorization")), "header:authorization", true),
        (hooks(HttpPolicy::default().principal(header("x-tenant"))), "header:x-tenant", true),
    ] {
        assert_eq!(policy.scope.principal.to_string(), principal);
        assert_eq!(!policy.warnings().is_empty(), warns, "{principal}");
        assert_eq!(policy.settings().principal, Some(PrincipalNames::One(principal.to_owned())));
    }
}

#[test]
fn debug_shows_no_more_than_choices() {
    let shown = format!("{:?}", HttpPolicy::default());
    assert!(shown.starts_with("HttpPolicy { dialect: Default, key: Optional, "), "{shown}");
}
