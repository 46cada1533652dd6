use super::*;

fn headers(hosts: &[&str]) -> HeaderMap {
    hosts.iter().map(|host| (HOST, host.parse().unwrap())).collect()
}

#[test]
fn only_known_host_names_are_accepted() {
    let listen = "127.0.0.1:8081".parse().unwrap();
    let hosts = Hosts::new(listen, &["Admin.Example.org".to_owned()]);
    for (host, expected) in [
        ("localhost:8081", true),
        ("LOCALHOST", true),
        ("127.0.0.1:8081", true),
        ("127.9.9.9", true),
        ("[::1]:8081", true),
        ("admin.example.org", true),
        ("admin.example.org:443", true),
        ("evil.example", false),
        ("localhost.evil.example", false),
        ("127.0.0.1.evil.example", false),
        ("admin.example.org.evil.example", false),
        ("10.0.0.1", false),
        ("user@localhost", false),
        ("", false),
        ("a b", false),
    ] {
        assert_eq!(hosts.accepts(&headers(&[host])), expected, "{host:?}");
    }
    assert!(!hosts.accepts(&headers(&[])), "no name at all");
    assert!(!hosts.accepts(&headers(&["localhost", "evil.example"])), "two names");
}

#[test]
fn an_exposed_listener_accepts_any_address_and_no_other_name() {
    let hosts = Hosts::new("0.0.0.0:8081".parse().unwrap(), &[]);
    assert!(hosts.accepts(&headers(&["10.0.0.1:8081"])));
    assert!(!hosts.accepts(&headers(&["evil.example"])));
}
