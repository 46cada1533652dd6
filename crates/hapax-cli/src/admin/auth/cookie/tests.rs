use super::*;

fn sent_back(set_cookie: &HeaderValue) -> HeaderMap {
    let pair = set_cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
    HeaderMap::from_iter([(COOKIE, HeaderValue::try_from(format!("other=1; {pair}")).unwrap())])
}

#[test]
fn a_cookie_opens_only_with_the_token_and_the_port_it_was_made_for() {
    let token = Token::random();
    let cookies = Cookies::new(&token, 8081);
    let headers = sent_back(&cookies.issue("Ada"));
    assert_eq!(cookies.open(&headers).as_deref(), Some("Ada"));
    assert_eq!(Cookies::new(&Token::random(), 8081).open(&headers), None, "another token");
    assert_eq!(Cookies::new(&token, 8082).open(&headers), None, "another port");
    assert_eq!(cookies.open(&HeaderMap::new()), None);
}

#[test]
fn a_changed_or_late_cookie_does_not_open() {
    let cookies = Cookies::new(&Token::random(), 8081);
    let good = cookies.issue("Ada").to_str().unwrap().split(';').next().unwrap().to_owned();
    let (name, value) = good.split_once('=').unwrap();
    let mut parts = value.split('.');
    let (until, who, signature) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    let later = until.parse::<u64>().unwrap() + 1;
    for changed in [
        format!("{later}.{who}.{signature}"),
        format!("{until}.{}.{signature}", URL_SAFE_NO_PAD.encode("Eve")),
        format!("{until}.{who}."),
        format!("{until}.{who}"),
        String::new(),
    ] {
        let header = HeaderValue::try_from(format!("{name}={changed}")).unwrap();
        assert_eq!(cookies.open(&HeaderMap::from_iter([(COOKIE, header)])), None, "{changed}");
    }
    assert_eq!(cookies.open(&sent_back(&cookies.issue_until("Ada", 1))), None, "its time is over");
}

#[test]
fn scripts_and_other_sites_do_not_get_the_cookie_and_the_token_is_not_in_it() {
    let token = Token::random();
    let set = Cookies::new(&token, 8081).issue("Ada");
    let set = set.to_str().unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
    assert!(!set.contains(token.reveal()), "{set}");
}
