use hapax_core::Class;
use http::Response;

use super::*;

type Fields<'a> = &'a [(&'a str, &'a str)];

fn map(fields: Fields<'_>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    map
}

fn parts(status: u16, fields: Fields<'_>) -> Parts {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(status).unwrap();
    parts.headers = map(fields);
    parts
}

/// Records a response and replays it to a retry with these fields.
fn round(rules: &ReplayRules, response: &Parts, body: &'static [u8], retry: Fields<'_>) -> Replayed {
    let recorded = record(rules, None, response, body, None);
    replay(rules, &map(retry), recorded).unwrap()
}

/// The fields of a replay, without the marker.
fn replayed(rules: &ReplayRules, fields: Fields<'_>) -> HeaderMap {
    let mut headers = round(rules, &parts(200, fields), b"", &[]).headers;
    headers.remove(&rules.marker);
    headers
}

#[test]
fn r_01_a_replay_is_the_first_response_with_the_marker() {
    let response =
        parts(201, &[("content-type", "application/json"), ("x-a", "1"), ("x-b", "2"), ("x-a", "3")]);
    let replayed = round(&ReplayRules::default(), &response, b"\x00\xff{}", &[]);
    assert_eq!(replayed.status, StatusCode::CREATED);
    assert_eq!(&replayed.body[..], b"\x00\xff{}");
    assert_eq!(replayed.trailers, None);
    let expected = map(&[
        ("content-type", "application/json"),
        ("x-a", "1"),
        ("x-a", "3"),
        ("x-b", "2"),
        ("x-idempotent-replayed", "true"),
    ]);
    assert_eq!(replayed.headers, expected);
}

#[test]
fn r_01_values_keep_their_octets() {
    let mut response = parts(200, &[]);
    let value = HeaderValue::from_bytes(b"\xfc\xff \tx").unwrap();
    response.headers.insert("x-binary", value.clone());
    response.headers.insert("x-empty", HeaderValue::from_static(""));
    response.headers.insert("x-long", HeaderValue::from_str(&"y".repeat(70_000)).unwrap());
    let replayed = round(&ReplayRules::default(), &response, b"", &[]);
    assert_eq!(replayed.headers["x-binary"], value);
    assert_eq!(replayed.headers["x-empty"], "");
    assert_eq!(replayed.headers["x-long"].len(), 70_000);
}

#[test]
fn r_01_first_responses_are_marked_only_if_configured() {
    let request = map(&[("idempotency-key", "\"k\"")]);
    let head = [("idempotency-outcome", "pin"), ("x-a", "1")];
    let mut plain = map(&head);
    ReplayRules::default().prepare_first(&request, &mut plain);
    assert_eq!(plain, map(&[("x-a", "1")]));

    let echo_key = Some(HeaderName::from_static("idempotency-key"));
    let rules = ReplayRules { mark_first: true, echo_key, ..ReplayRules::default() };
    let mut marked = map(&head);
    rules.prepare_first(&request, &mut marked);
    assert_eq!(
        marked,
        map(&[("x-a", "1"), ("x-idempotent-replayed", "false"), ("idempotency-key", "\"k\"")])
    );
}

#[test]
fn r_01_the_key_is_echoed_in_the_spelling_of_the_retry() {
    let echo_key = Some(HeaderName::from_static("idempotency-key"));
    let rules = ReplayRules { echo_key, ..ReplayRules::default() };
    let first = parts(200, &[("idempotency-key", "\"k\"")]);
    assert_eq!(round(&rules, &first, b"", &[("idempotency-key", "k")]).headers["idempotency-key"], "k");
}

#[test]
fn r_02_fields_of_the_connection_are_not_replayed() {
    let fields = [
        ("connection", "close, X-Hop"),
        ("connection", "x-other"),
        ("x-hop", "1"),
        ("x-other", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("proxy-authenticate", "Basic"),
        ("proxy-authentication-info", "x"),
        ("te", "trailers"),
        ("trailer", "x-sum"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("content-length", "5"),
        ("x-kept", "1"),
    ];
    assert_eq!(replayed(&ReplayRules::default(), &fields), map(&[("x-kept", "1")]));
}

#[test]
fn r_03_fields_of_the_result_are_replayed() {
    let fields = [
        ("content-type", "text/plain"),
        ("content-language", "de"),
        ("content-encoding", "gzip"),
        ("content-location", "/orders/1"),
        ("location", "/orders/1"),
        ("etag", "\"v1\""),
        ("last-modified", "Sat, 14 Nov 2026 10:00:00 GMT"),
        ("link", "</a>; rel=next"),
        ("link", "</b>; rel=prev"),
        ("vary", "accept"),
        ("cache-control", "private"),
        ("retry-after", "3"),
    ];
    assert_eq!(replayed(&ReplayRules::default(), &fields), map(&fields));
}

#[test]
fn r_04_fields_of_the_exchange_are_not_replayed() {
    let fields = [
        "date",
        "age",
        "x-request-id",
        "request-id",
        "traceparent",
        "tracestate",
        "baggage",
        "b3",
        "x-b3-traceid",
        "x-amzn-trace-id",
        "x-cloud-trace-context",
        "server-timing",
        "ratelimit",
        "ratelimit-policy",
        "ratelimit-remaining",
        "x-ratelimit-reset",
        "alt-svc",
        "idempotency-outcome",
        "idempotency-recorded",
        "idempotency-protected",
        "x-idempotent-replayed",
    ];
    for field in fields {
        assert_eq!(replayed(&ReplayRules::default(), &[(field, "1")]), HeaderMap::new(), "{field}");
    }
}

#[test]
fn r_05_cookies_are_replayed_only_if_configured() {
    let cookies = [("set-cookie", "a=1"), ("set-cookie", "b=2, c")];
    assert_eq!(replayed(&ReplayRules::default(), &cookies), HeaderMap::new());
    let rules = ReplayRules { set_cookie: true, ..ReplayRules::default() };
    assert_eq!(replayed(&rules, &cookies), map(&cookies));

    let recorded = record(&rules, None, &parts(200, &cookies), &[], None);
    let later = replay(&ReplayRules::default(), &HeaderMap::new(), recorded).unwrap();
    assert!(!later.headers.contains_key("set-cookie"), "the rule at the time of the replay applies");
}

#[test]
fn r_05_cookies_are_not_stored_by_default() {
    let response = parts(200, &[("set-cookie", "secret=1")]);
    let recorded = record(&ReplayRules::default(), None, &response, &[], None);
    assert!(!recorded.meta.windows(6).any(|bytes| bytes == b"secret"));
}

#[test]
fn r_03_the_lists_remove_fields() {
    let fields =
        [("content-type", "a/b"), ("location", "/1"), ("grpc-status", "0"), ("x-a", "1"), ("x-b", "2")];
    let only = Some(vec![HeaderName::from_static("x-a")]);
    let rules = ReplayRules { only, ..ReplayRules::default() };
    assert_eq!(replayed(&rules, &fields), map(&fields[..4]));
    let rules = ReplayRules { drop: vec![HeaderName::from_static("x-a"), http::header::LOCATION], ..rules };
    assert_eq!(replayed(&rules, &fields), map(&[fields[0], fields[2]]));
}

fn cors(first: Option<&'static str>, retry: Fields<'_>) -> HeaderMap {
    let response = parts(200, &[("access-control-allow-origin", "https://a.example"), ("vary", "origin")]);
    let first = first.map(HeaderValue::from_static);
    let rules = ReplayRules::default();
    let recorded = record(&rules, first.as_ref(), &response, &[], None);
    replay(&rules, &map(retry), recorded).unwrap().headers
}

#[test]
fn r_06_cors_fields_are_replayed_only_to_the_first_origin() {
    let a = "https://a.example";
    assert_eq!(cors(Some(a), &[("origin", a)])["access-control-allow-origin"], a);
    for (first, retry) in [(Some(a), "https://b.example"), (None, a), (Some(a), "")] {
        let headers = cors(first, &[("origin", retry)]);
        assert!(!headers.keys().any(fields::is_cors), "{first:?} {retry}");
        assert_eq!(headers["vary"], "origin");
    }
    assert!(!cors(Some(a), &[]).contains_key("access-control-allow-origin"));
}

#[test]
fn r_06_the_origin_is_stored_only_with_cors_fields() {
    let origin = HeaderValue::from_static("https://a.example");
    let recorded = record(&ReplayRules::default(), Some(&origin), &parts(200, &[]), &[], None);
    assert_eq!(recorded.meta.len(), 4);
}

#[test]
fn r_06_scripts_may_read_the_marker() {
    let check = |fields: Fields<'_>, expected: &[&str]| {
        let headers = round(&ReplayRules::default(), &parts(200, fields), b"", &[]).headers;
        let exposed: Vec<_> = headers.get_all("access-control-expose-headers").iter().collect();
        assert_eq!(exposed, expected);
    };
    let allow = ("access-control-allow-origin", "*");
    let expose = "access-control-expose-headers";
    check(&[], &[]);
    check(&[allow], &["x-idempotent-replayed, retry-after"]);
    check(&[allow, (expose, "X-A, Retry-After")], &["X-A, Retry-After", "x-idempotent-replayed"]);
    check(&[allow, (expose, "*")], &["*"]);
    check(
        &[allow, (expose, "*"), ("access-control-allow-credentials", "true")],
        &["*", "x-idempotent-replayed, retry-after"],
    );
}

#[test]
fn r_07_some_statuses_have_no_content() {
    for (status, content) in [(200, true), (202, true), (204, false), (205, false), (304, false), (404, true)]
    {
        let response = parts(status, &[("content-length", "4")]);
        let recorded = record(&ReplayRules::default(), None, &response, b"body", None);
        let mut stored_otherwise = recorded.clone();
        stored_otherwise.payload = Bytes::from_static(b"body");
        for recorded in [recorded, stored_otherwise] {
            let replayed = replay(&ReplayRules::default(), &HeaderMap::new(), recorded).unwrap();
            assert_eq!(!replayed.body.is_empty(), content, "{status}");
            assert!(!replayed.headers.contains_key("content-length"));
        }
    }
}

#[test]
fn r_09_accept_encoding_decides_which_codings_are_accepted() {
    let check = |accept: &[&str], coding: &str, expected| {
        let fields: Vec<_> = accept.iter().map(|value| ("accept-encoding", *value)).collect();
        assert_eq!(coding::acceptable(&map(&fields), coding.as_bytes()), expected, "{accept:?} {coding}");
    };
    check(&[], "gzip", true);
    check(&[""], "gzip", false);
    check(&["gzip"], "gzip", true);
    check(&["GZIP"], "x-gzip", true);
    check(&["x-gzip"], "gzip", true);
    check(&["br, gzip;q=0.5"], "gzip", true);
    check(&["br", "gzip"], "gzip", true);
    check(&["gzip;q=0"], "gzip", false);
    check(&["gzip ; Q=0.000"], "gzip", false);
    check(&["gzip;q=0.001"], "gzip", true);
    check(&["*"], "br", true);
    check(&["*;q=0"], "br", false);
    check(&["*, br;q=0"], "br", false);
    check(&["br;q=0, *"], "br", false);
    check(&["identity"], "br", false);
}

#[test]
fn r_09_an_unknown_coding_is_replayed_unchanged() {
    let fields = [("content-encoding", "zstd"), ("etag", "\"v1\""), ("content-digest", "x")];
    let retry = [("accept-encoding", "identity")];
    let replayed = round(&ReplayRules::default(), &parts(200, &fields), b"not zstd", &retry);
    assert_eq!(&replayed.body[..], b"not zstd");
    assert_eq!(replayed.headers["content-encoding"], "zstd");
    assert_eq!(replayed.headers["etag"], "\"v1\"");
}

#[cfg(feature = "decode")]
#[test]
fn r_09_a_coding_that_the_retry_excludes_is_decoded() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(b"plain text").unwrap();
    let zipped = Bytes::from(encoder.finish().unwrap());
    let fields = [
        ("content-encoding", "gzip"),
        ("content-type", "text/plain"),
        ("etag", "\"v1\""),
        ("content-digest", "sha-256=:x:"),
    ];
    let rules = ReplayRules::default();
    let recorded = record(&rules, None, &parts(200, &fields), &zipped, None);

    let as_stored = replay(&rules, &map(&[("accept-encoding", "gzip, br")]), recorded.clone()).unwrap();
    assert_eq!((as_stored.body, &as_stored.headers["etag"]), (zipped, &HeaderValue::from_static("\"v1\"")));

    let undone = replay(&rules, &map(&[("accept-encoding", "br")]), recorded).unwrap();
    assert_eq!(&undone.body[..], b"plain text");
    let expected = [
        ("content-type", "text/plain"),
        ("etag", "W/\"v1\""),
        ("vary", "accept-encoding"),
        ("x-idempotent-replayed", "true"),
    ];
    assert_eq!(undone.headers, map(&expected));
}

#[test]
fn r_10_other_outcomes_are_not_replayed() {
    let check = |format, why| {
        let recorded = Recorded::new(Class::Success, format, "done");
        let refused = replay(&ReplayRules::default(), &HeaderMap::new(), recorded).unwrap_err();
        assert_eq!(refused, why);
    };
    check(Format::NOT_KEPT, NotReplayable::NotKept);
    check(Format::OPERATOR, NotReplayable::Foreign);
    check(Format::FUNCTION, NotReplayable::Foreign);
    check(Format(77), NotReplayable::Foreign);
    check(Format::HTTP, NotReplayable::Damaged);
}

#[test]
fn r_11_trailers_are_separate_from_headers() {
    let trailers = map(&[("grpc-status", "0"), ("x-sum", "1"), ("x-sum", "2"), ("content-length", "1")]);
    let only = Some(Vec::new());
    let rules = ReplayRules { only, ..ReplayRules::default() };
    let recorded = record(&rules, None, &parts(200, &[("x-a", "1")]), &[], Some(&trailers));
    let replayed = replay(&rules, &HeaderMap::new(), recorded).unwrap();
    assert_eq!(
        replayed.trailers.as_deref(),
        Some(&map(&[("grpc-status", "0"), ("x-sum", "1"), ("x-sum", "2")]))
    );
    assert_eq!(replayed.headers, map(&[("x-idempotent-replayed", "true")]));
    let none = record(&rules, None, &parts(200, &[]), &[], Some(&HeaderMap::new()));
    assert_eq!(replay(&rules, &HeaderMap::new(), none).unwrap().trailers, None);
}

#[test]
fn the_class_is_that_of_the_status() {
    for (status, class) in
        [(200, Class::Success), (303, Class::Success), (404, Class::Error), (500, Class::Error)]
    {
        let recorded = record(&ReplayRules::default(), None, &parts(status, &[]), &[], None);
        assert_eq!((recorded.class, recorded.format), (class, Format::HTTP));
    }
}

/// Version 1, byte for byte: stored records must stay readable.
const VERSION_1: &[u8] = b"\x01\x00\xc9\x11https://a.example\
    \x01\x0ccontent-type\x0atext/plain\
    \x01\x1baccess-control-allow-origin\x01*\
    \x02\x05x-sum\x012";

#[test]
fn version_1_is_encoded_and_decoded_unchanged() {
    let origin = HeaderValue::from_static("https://a.example");
    let response = parts(201, &[("content-type", "text/plain"), ("access-control-allow-origin", "*")]);
    let trailers = map(&[("x-sum", "2")]);
    let rules = ReplayRules::default();
    let recorded = record(&rules, Some(&origin), &response, &[], Some(&trailers));
    assert_eq!(recorded.meta, VERSION_1);
}

#[test]
fn damaged_bytes_neither_panic_nor_overrun() {
    let retry = map(&[("origin", "https://a.example"), ("accept-encoding", "identity")]);
    let read = |meta: Vec<u8>| {
        let recorded = Recorded::new(Class::Success, Format::HTTP, "body").with_meta(meta);
        replay(&ReplayRules::default(), &retry, recorded)
    };
    let mut refused = 0;
    for at in 0..VERSION_1.len() {
        refused += usize::from(read(VERSION_1[..at].to_vec()).is_err());
        for byte in 0..=u8::MAX {
            let mut meta = VERSION_1.to_vec();
            meta[at] = byte;
            if let Ok(replayed) = read(meta) {
                // The three stored fields and two of the layer's own.
                assert!(replayed.headers.len() <= 5 && replayed.status.as_u16() >= 200);
            }
        }
    }
    // Truncated between two fields it is a valid shorter head; the record's checksum detects that.
    assert_eq!(refused, VERSION_1.len() - 3);
    for meta in ["\u{1}", "\u{2}\0\u{c8}\0", "\u{1}\0\u{65}\0", "\u{1}\0\0\0"] {
        assert_eq!(read(meta.as_bytes().to_vec()).unwrap_err(), NotReplayable::Damaged);
    }
    assert!(read(b"\x01\x00\xc8\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f".to_vec()).is_err());
}

#[test]
fn more_fields_than_a_map_holds_are_damaged() {
    let mut writer = HeadWriter::new(StatusCode::OK, b"");
    for number in 0..40_000 {
        let name = HeaderName::from_bytes(format!("x-{number}").as_bytes()).unwrap();
        writer.field(FieldSection::Header, &name, &HeaderValue::from_static("1"));
    }
    let recorded = Recorded::new(Class::Success, Format::HTTP, "").with_meta(writer.finish(&[]).0);
    let refused = replay(&ReplayRules::default(), &HeaderMap::new(), recorded).unwrap_err();
    assert_eq!(refused, NotReplayable::Damaged);
}

#[test]
fn a_record_does_not_share_the_read_buffer() {
    let read = Bytes::from(vec![b'x'; 1 << 20]);
    let recorded = record(&ReplayRules::default(), None, &parts(200, &[]), &read.slice(..10), None);
    assert_eq!(recorded.payload, "x".repeat(10));
    assert!(read.try_into_mut().is_ok(), "the buffer is still shared");
}
