//! What is forwarded about a client, and what a client cannot have removed.

use super::*;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

fn client(peer: IpAddr, security: Security, is_trusted: bool) -> ClientInfo {
    let options =
        ListenerOptions { forwarded: true, trust_forwarded: is_trusted, ..ListenerOptions::default() };
    ClientInfo::new(peer, security, &options, ReservedFields::default())
}

#[test]
fn forwarded_fields_are_kept_only_of_a_trusted_client() {
    let from = [
        ("host", "shop"),
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "2.2.2.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "front"),
        ("forwarded", "for=1.1.1.1"),
    ];
    let rewritten = |is_trusted| {
        let mut headers = headers(&from);
        let peer = "::ffff:9.9.9.9".parse().unwrap();
        client(peer, Security::Plain, is_trusted).rewrite_request(&mut headers, Version::HTTP_11);
        ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded"]
            .map(|name| values(&headers, name).join("|"))
    };
    assert_eq!(
        rewritten(true),
        ["1.1.1.1, 2.2.2.2, 9.9.9.9", "https", "front", "for=1.1.1.1, for=9.9.9.9;proto=http"]
    );
    assert_eq!(rewritten(false), ["9.9.9.9", "http", "shop", "for=9.9.9.9;proto=http"]);
}

#[test]
fn an_ipv6_address_has_the_form_of_each_field() {
    let mut headers = headers(&[("host", "a")]);
    let peer = "2001:db8::1".parse().unwrap();
    client(peer, Security::Tls, false).rewrite_request(&mut headers, Version::HTTP_2);
    assert_eq!(values(&headers, "x-forwarded-for"), ["2001:db8::1"]);
    assert_eq!(values(&headers, "forwarded"), ["for=\"[2001:db8::1]\";proto=https"]);
    assert_eq!(values(&headers, "via"), ["2 hapax"]);
}

#[test]
fn connection_options_remove_no_field_that_the_message_needs() {
    let mut headers = headers(&[
        ("host", "a"),
        ("connection", "Host, Content-Length, x-a"),
        ("connection", "x-b , te"),
        ("content-length", "3"),
        ("x-a", "1"),
        ("x-b", "1"),
        ("te", "trailers, deflate"),
    ]);
    remove_connection_options(&mut headers);
    for (name, is_kept) in [("host", true), ("content-length", true), ("x-a", false), ("x-b", false)] {
        assert_eq!(headers.contains_key(name), is_kept, "{name}");
    }
    strip_request(&mut headers, Version::HTTP_11, Upgrade::Remove);
    assert_eq!(values(&headers, "te"), ["trailers"]);
    for gone in ["connection", "content-length"] {
        assert!(!headers.contains_key(gone), "{gone}");
    }
}

/// The names of the fields that remain.
fn remaining(lines: &[(&'static str, &'static str)], strip: impl FnOnce(&mut HeaderMap)) -> Vec<String> {
    let mut headers = headers(lines);
    strip(&mut headers);
    let mut left: Vec<_> = headers.keys().map(|name| name.as_str().to_owned()).collect();
    left.sort_unstable();
    left
}

const HOP_BY_HOP: [(&str, &str); 5] = [
    ("connection", "keep-alive"),
    ("keep-alive", "timeout=5"),
    ("proxy-connection", "keep-alive"),
    ("transfer-encoding", "chunked"),
    ("upgrade", "websocket"),
];

#[test]
fn hop_by_hop_fields_of_the_client_are_removed() {
    let from = [
        ("content-length", "3"),
        ("expect", "100-continue"),
        ("http2-settings", "AAMAAABkAAQCAAAAAAIAAAAA"),
        ("proxy-authorization", "Basic c2VjcmV0"),
        ("te", "deflate"),
        ("host", "a"),
        ("x-kept", "1"),
    ];
    let from = [&from[..], &HOP_BY_HOP].concat();
    let left = |upgrade| remaining(&from, |headers| strip_request(headers, Version::HTTP_11, upgrade));
    assert_eq!(left(Upgrade::Remove), ["host", "x-kept"]);
    assert_eq!(left(Upgrade::Keep), ["connection", "host", "upgrade", "x-kept"]);
}

#[test]
fn hop_by_hop_fields_of_the_upstream_are_removed() {
    let from = [("content-length", "3"), ("proxy-authenticate", "Basic"), ("x-kept", "1")];
    let from = [&from[..], &HOP_BY_HOP].concat();
    let left = |upgrade| remaining(&from, |headers| strip_response(headers, upgrade));
    assert_eq!(left(Upgrade::Remove), ["content-length", "x-kept"]);
    assert_eq!(left(Upgrade::Keep), ["connection", "content-length", "upgrade", "x-kept"]);
}

#[test]
fn generated_ids_differ() {
    let ids: std::collections::HashSet<_> = (0..1000).map(|_| request_id::generate()).collect();
    assert_eq!(ids.len(), 1000);
}
