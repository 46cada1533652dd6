use super::*;

fn sent_back(set_cookie: &HeaderValue) -> HeaderMap {
    let pair = set_cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
    HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(format!("other=1; {pair}")).unwrap())])
}

#[test]
fn a_cookie_is_valid_for_its_listener_only() {
    let cookies = Cookies::new(8081);
    let headers = sent_back(&cookies.issue("Ada"));
    assert_eq!(cookies.open(&headers).as_deref(), Some("Ada"));
    assert_eq!(Cookies::new(8081).open(&headers), None, "a process with another token");
    assert_eq!(Cookies::new(8082).open(&headers), None, "another port");
    assert_eq!(cookies.open(&HeaderMap::new()), None);
}

#[test]
fn a_logout_invalidates_its_own_cookie_only() {
    let cookies = Cookies::new(8081);
    let (ada, eve) = (sent_back(&cookies.issue("Ada")), sent_back(&cookies.issue("Eve")));
    let taken_back = cookies.revoke(&ada);
    assert!(taken_back.to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(cookies.open(&ada), None);
    assert_eq!(cookies.open(&eve).as_deref(), Some("Eve"));
}

#[test]
fn a_changed_or_expired_cookie_is_invalid() {
    let cookies = Cookies::new(8081);
    let good = cookies.issue("Ada").to_str().unwrap().split(';').next().unwrap().to_owned();
    let (name, value) = good.split_once('=').unwrap();
    let another = URL_SAFE_NO_PAD.encode(Nonce::random().as_bytes());
    for changed in [another.as_str(), &value[1..], &format!("{value}A"), "%", ""] {
        let header = HeaderValue::try_from(format!("{name}={changed}")).unwrap();
        assert_eq!(cookies.open(&HeaderMap::from_iter([(COOKIE, header)])), None, "{changed}");
    }
    if let Some(long_ago) = Instant::now().checked_sub(VALID_FOR) {
        assert_eq!(cookies.open(&sent_back(&cookies.issue_since("Ada", long_ago))), None, "it has expired");
    }
}

#[test]
fn the_number_of_logins_is_limited() {
    let cookies = Cookies::new(8081);
    let first = sent_back(&cookies.issue("Ada"));
    let last = (0..LOGINS_MAX).map(|_| sent_back(&cookies.issue("Eve"))).last().unwrap();
    assert_eq!(cookies.logins.lock().len(), LOGINS_MAX);
    assert_eq!(cookies.open(&first), None, "the oldest was removed");
    assert!(cookies.open(&last).is_some());
}

#[test]
fn the_cookie_is_hidden_from_scripts_and_other_sites() {
    let set = Cookies::new(8081).issue("Ada");
    let set = set.to_str().unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
}
