//! What is said about a client, and what a client cannot have dropped.

use super::*;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn said(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

#[test]
fn only_a_trusted_client_speaks_for_others() {
    let from = [
        ("host", "shop"),
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "2.2.2.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "front"),
        ("forwarded", "for=1.1.1.1"),
    ];
    let admitted = |is_trusted| {
        let mut headers = headers(&from);
        let peer = "::ffff:9.9.9.9".parse().unwrap();
        Client::new(peer, Security::Plain, true, is_trusted).admit(&mut headers, Version::HTTP_11);
        ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded"]
            .map(|name| said(&headers, name).join("|"))
    };
    assert_eq!(
        admitted(true),
        ["1.1.1.1, 2.2.2.2, 9.9.9.9", "https", "front", "for=1.1.1.1, for=9.9.9.9;proto=http"]
    );
    assert_eq!(admitted(false), ["9.9.9.9", "http", "shop", "for=9.9.9.9;proto=http"]);
}

#[test]
fn an_address_of_version_6_is_written_as_each_field_wants_it() {
    let mut headers = headers(&[("host", "a")]);
    Client::new("2001:db8::1".parse().unwrap(), Security::Tls, true, false)
        .admit(&mut headers, Version::HTTP_2);
    assert_eq!(said(&headers, "x-forwarded-for"), ["2001:db8::1"]);
    assert_eq!(said(&headers, "forwarded"), ["for=\"[2001:db8::1]\";proto=https"]);
    assert_eq!(said(&headers, "via"), ["2 hapax"]);
}

#[test]
fn what_a_message_cannot_do_without_is_not_dropped() {
    let mut headers = headers(&[
        ("host", "a"),
        ("connection", "Host, Content-Length, x-a"),
        ("connection", "x-b , te"),
        ("content-length", "3"),
        ("x-a", "1"),
        ("x-b", "1"),
        ("te", "trailers, deflate"),
    ]);
    drop_named_by_connection(&mut headers);
    for (name, is_kept) in [("host", true), ("content-length", true), ("x-a", false), ("x-b", false)] {
        assert_eq!(headers.contains_key(name), is_kept, "{name}");
    }
    leave_connection(&mut headers, Version::HTTP_11, Wish::Dropped);
    assert_eq!(said(&headers, "te"), ["trailers"]);
    for gone in ["connection", "content-length"] {
        assert!(!headers.contains_key(gone), "{gone}");
    }
}

/// The names that are left of these fields.
fn left_of(lines: &[(&'static str, &'static str)], leave: impl FnOnce(&mut HeaderMap)) -> Vec<String> {
    let mut headers = headers(lines);
    leave(&mut headers);
    let mut left: Vec<_> = headers.keys().map(|name| name.as_str().to_owned()).collect();
    left.sort_unstable();
    left
}

const OF_A_CONNECTION: [(&str, &str); 5] = [
    ("connection", "keep-alive"),
    ("keep-alive", "timeout=5"),
    ("proxy-connection", "keep-alive"),
    ("transfer-encoding", "chunked"),
    ("upgrade", "websocket"),
];

#[test]
fn what_is_of_the_client_s_connection_goes_no_further() {
    let from = [
        ("content-length", "3"),
        ("expect", "100-continue"),
        ("http2-settings", "AAMAAABkAAQCAAAAAAIAAAAA"),
        ("proxy-authorization", "Basic c2VjcmV0"),
        ("te", "deflate"),
        ("host", "a"),
        ("x-kept", "1"),
    ];
    let from = [&from[..], &OF_A_CONNECTION].concat();
    let left = |wish| left_of(&from, |headers| leave_connection(headers, Version::HTTP_11, wish));
    assert_eq!(left(Wish::Dropped), ["host", "x-kept"]);
    assert_eq!(left(Wish::Kept), ["connection", "host", "upgrade", "x-kept"]);
}

#[test]
fn what_is_of_the_upstream_s_connection_goes_no_further() {
    let from = [("content-length", "3"), ("proxy-authenticate", "Basic"), ("x-kept", "1")];
    let from = [&from[..], &OF_A_CONNECTION].concat();
    let left = |wish| left_of(&from, |headers| leave_upstream(headers, wish));
    assert_eq!(left(Wish::Dropped), ["content-length", "x-kept"]);
    assert_eq!(left(Wish::Kept), ["connection", "content-length", "upgrade", "x-kept"]);
}

#[test]
fn ids_differ() {
    let ids: std::collections::HashSet<_> = (0..1000).map(|_| id::make()).collect();
    assert_eq!(ids.len(), 1000);
}
