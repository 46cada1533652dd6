//! The inspector by itself, and against the parser that reads behind it.

use super::*;

const MAX: usize = 512;

/// A connection's bytes, and how far they may be read.
fn inspect(pieces: &[&[u8]]) -> (Inspector, Inspected) {
    let mut inspector = Inspector::new(MAX);
    let mut before = 0;
    for piece in pieces {
        match inspector.inspect(piece) {
            Inspected::Fine => before += piece.len(),
            Inspected::Refused(end, fault) => return (inspector, Inspected::Refused(before + end, fault)),
            Inspected::Broken => return (inspector, Inspected::Broken),
        }
    }
    (inspector, Inspected::Fine)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn the_place_where_the_next_request_begins_is_known() {
    for (request, is_between) in [
        (GET.to_owned(), true),
        (format!("\r\n{GET}"), true),
        ("GET / HTTP/1.1\r\nHost: a\r\n".to_owned(), false),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab".to_owned(), false),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".to_owned(), true),
        ("POST / HTTP/1.1\r\nHost: a\r\ncontent-length:\t3 \r\n\r\nabc".to_owned(), true),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n".to_owned(), false),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n".to_owned(),
            true,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: b\r\n\r\n".to_owned(),
            true,
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n".to_owned(), true),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n".to_owned(), false),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), true),
    ] {
        let bytes = request.as_bytes();
        for split in 0..=bytes.len() {
            let (inspector, inspected) = inspect(&[&bytes[..split], &bytes[split..]]);
            assert_eq!(inspected, Inspected::Fine, "{request:?} at {split}");
            assert_eq!(inspector.is_between(), is_between, "{request:?} at {split}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(inspect(&single).1, Inspected::Fine, "{request:?}");
    }
}

#[test]
fn a_fault_is_the_same_wherever_the_bytes_are_split() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(MAX));
    for (head, fault) in [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", Fault::BareLineFeed),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Fault::RequestLine),
        ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", Fault::Target),
        ("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", Fault::FieldName),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", Fault::FieldValue),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", Fault::ContentLength),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", Fault::TransferEncoding),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
            Fault::TwoLengths,
        ),
        ("GET / HTTP/1.1\r\n\r\n", Fault::Host),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\n",
            Fault::UpgradeWithBody,
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nx", Fault::EarlyUpgrade),
        (&long, Fault::TooLarge),
    ] {
        let bytes = [GET.as_bytes(), head.as_bytes()].concat();
        for split in 0..=bytes.len() {
            let (_, inspected) = inspect(&[&bytes[..split], &bytes[split..]]);
            let Inspected::Refused(end, found) = inspected else {
                panic!("{head:?} at {split}: {inspected:?}")
            };
            assert_eq!(found, fault, "{head:?} at {split}");
            assert!(end >= GET.len(), "{head:?} at {split}: what came before is not spoiled");
        }
    }
}

#[test]
fn another_protocol_is_looked_at_only_until_it_is_agreed_on() {
    let wish = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let (mut inspector, _) = inspect(&[wish.as_bytes()]);
    inspector.accepted();
    assert_eq!(inspector.inspect(b"\0\n anything"), Inspected::Fine);
    let (mut inspector, _) = inspect(&[wish.as_bytes()]);
    inspector.declined();
    assert_eq!(inspector.inspect(GET.as_bytes()), Inspected::Fine);
    assert!(inspector.is_between());
}

#[test]
fn nothing_follows_what_was_refused() {
    let (mut inspector, _) = inspect(&[b"GET / HTTP/1.1\n"]);
    assert_eq!(inspector.inspect(GET.as_bytes()), Inspected::Broken);
}

/// Whatever the bytes are: the parser behind us never takes a head for whole that was not judged, and what was
/// admitted it reads to the same end.
#[test]
fn the_parser_never_sees_more_than_was_judged() {
    const SEEDS: [&str; 6] = [
        GET,
        "POST /a?b HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\nX: y z\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX:\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: a, b\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nhost: a\r\n\r\n",
        "\r\nGET / HTTP/1.0\r\n\r\n",
    ];
    const ODD: &[u8] = b"\r\n \t:;,\0\x0b\x7f\x80/0aA+";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..100_000 {
        let mut bytes = SEEDS[random(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = ODD[random(ODD.len())],
                1 => bytes.insert(at, ODD[random(ODD.len())]),
                _ => drop(bytes.remove(at)),
            }
        }
        let (inspector, inspected) = inspect(&[&bytes]);
        let mut seen = bytes.clone();
        if let Inspected::Refused(end, _) = inspected {
            seen.truncate(end);
            seen.extend(SPOILED);
        }
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let parsed = httparse::Request::new(&mut fields).parse(&seen);
        match inspected {
            Inspected::Fine if inspector.is_in_head() => {
                assert!(
                    !matches!(parsed, Ok(httparse::Status::Complete(_))),
                    "{:?}",
                    seen.escape_ascii().to_string()
                );
            }
            Inspected::Fine => {
                assert!(
                    matches!(parsed, Ok(httparse::Status::Complete(_))),
                    "{:?}",
                    seen.escape_ascii().to_string()
                );
                admitted += 1;
            }
            // A fault of what follows a head leaves the head as it was.
            Inspected::Refused(end, _) if bytes[..end].windows(4).any(|window| window == b"\r\n\r\n") => {}
            Inspected::Refused(..) => {
                assert!(parsed.is_err(), "{:?}", seen.escape_ascii().to_string());
                refused += 1;
            }
            Inspected::Broken => refused += 1,
        }
    }
    assert!(admitted > 1000 && refused > 1000, "{admitted} admitted, {refused} refused");
}
