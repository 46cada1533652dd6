use super::*;

fn rules(policy: &HttpPolicy) -> Rules {
    policy.rules(&Policy::default())
}

#[test]
fn m_02_m_04_some_methods_are_never_covered() {
    let named = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT];
    let policy = HttpPolicy::default().methods(named.into_iter().chain([Method::DELETE]));
    assert_eq!(rules(&policy).methods, [Method::DELETE]);
}

#[test]
fn m_03_delete_is_covered_by_choice() {
    assert!(!rules(&HttpPolicy::default()).methods.contains(&Method::DELETE));
    assert!(rules(&HttpPolicy::default().methods([Method::DELETE])).methods.contains(&Method::DELETE));
}

#[test]
fn r_01_the_key_is_echoed_in_the_configured_header() {
    let name = HeaderName::from_static("x-key");
    let before = HttpPolicy::default().echo_key(true).header(name.clone());
    let after = HttpPolicy::default().header(name.clone()).echo_key(true);
    let echoed = |policy| rules(policy).replay.echo_key;
    assert_eq!((echoed(&before), echoed(&after)), (Some(name.clone()), Some(name)));
}

#[test]
fn e_01_the_refusal_of_a_missing_key_names_its_header() {
    let policy = HttpPolicy::default().header(HeaderName::from_static("x-key"));
    assert!(rules(&policy).key_missing().detail.contains("x-key"));
}

#[cfg(feature = "webhook")]
#[test]
fn p_03_webhooks_are_kept_longer_than_their_senders_retry() {
    let policy = rules(&HttpPolicy::default().webhook(Webhook::cloud_events()));
    assert_eq!(policy.key, KeyMode::Required);
    assert!(policy.engine.retention > Duration::from_secs(4 * 24 * 3600));
    assert_eq!(policy.outcomes.of(StatusCode::OK), Outcome::Pin);
    assert_eq!(policy.outcomes.of(StatusCode::NOT_FOUND), Outcome::Release);
}

#[cfg(feature = "webhook")]
#[test]
fn p_03_a_credential_is_the_principal_of_a_webhook_only_if_chosen() {
    let header = |name| Principal::Header(HeaderName::from_static(name));
    let hooks = |policy: HttpPolicy| policy.webhook(Webhook::cloud_events());
    for (policy, principal, warns) in [
        (hooks(HttpPolicy::default()), "none", false),
        (hooks(HttpPolicy::default().principal(header("x-api-key"))), "header:x-api-key", true),
        (hooks(HttpPolicy::default()).anonymous(Anonymous::Refuse), "none", true),
        (hooks(HttpPolicy::default()).principal(header("authorization")), "header:authorization", true),
        (hooks(HttpPolicy::default().principal(header("x-tenant"))), "header:x-tenant", true),
    ] {
        assert_eq!(rules(&policy).scope.principal.to_string(), principal);
        assert_eq!(!policy.warnings().is_empty(), warns, "{principal}");
        assert_eq!(policy.settings().principal.unwrap().to_string(), principal);
    }
}

#[test]
fn debug_shows_only_the_options() {
    let shown = format!("{:?}", HttpPolicy::default());
    assert!(shown.starts_with("HttpPolicy { dialect: Default, key: Optional, "), "{shown}");
}

/// A policy passed to `route` takes the durations of the builder, not the defaults.
#[tokio::test]
async fn unset_durations_are_those_of_the_builder() {
    let day = Duration::from_secs(24 * 3600);
    let engine = Policy::default().retention(3 * day).lease(Duration::from_secs(7)).on_lapse(OnLapse::Rerun);
    let check = |policy: HttpPolicy, retention: Duration| {
        let rules = policy.rules(&engine);
        assert_eq!(rules.engine.retention, retention);
        assert_eq!(rules.engine.lease, Duration::from_secs(7));
        assert_eq!(rules.engine.on_lapse, OnLapse::Rerun);
    };
    check(HttpPolicy::default(), 3 * day);
    check(HttpPolicy::default().retention(day), day);
    check(HttpPolicy::of(Dialect::StripeV2), 30 * day);
    check(HttpPolicy::of(Dialect::StripeV2).retention(day), day);
    #[cfg(feature = "webhook")]
    check(HttpPolicy::default().webhook(Webhook::cloud_events()), 7 * day);
}

#[test]
fn x_11_the_later_choice_of_an_outcome_wins() {
    let status = |text: &str| text.parse::<StatusSet>().unwrap();
    let policy = HttpPolicy::default().outcome(status("404"), Outcome::Release);
    let of = |policy: &HttpPolicy, code| rules(policy).outcomes.of(StatusCode::from_u16(code).unwrap());
    assert_eq!((of(&policy, 404), of(&policy, 400)), (Outcome::Release, Outcome::Pin));
    let policy = policy.outcome(status("4xx"), Outcome::Uncertain);
    assert_eq!((of(&policy, 404), of(&policy, 400)), (Outcome::Uncertain, Outcome::Uncertain));
    let policy = policy.outcome(status("404"), Outcome::Pin);
    assert_eq!((of(&policy, 404), of(&policy, 400)), (Outcome::Pin, Outcome::Uncertain));
}
