//! The inspector alone, and against the parser behind it.

use super::*;

const MAX: usize = 512;

/// Inspects the bytes of a connection, read in these pieces.
fn inspect(pieces: &[&[u8]]) -> (Http1Inspector, Inspection) {
    let mut inspector = Http1Inspector::new(MAX);
    let mut before = 0;
    for piece in pieces {
        match inspector.inspect(piece) {
            Inspection::Accepted => before += piece.len(),
            Inspection::Refused(end, fault) => return (inspector, Inspection::Refused(before + end, fault)),
            Inspection::InvalidBody => return (inspector, Inspection::InvalidBody),
        }
    }
    (inspector, Inspection::Accepted)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn finds_where_the_next_request_begins() {
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
            assert_eq!(inspected, Inspection::Accepted, "{request:?} at {split}");
            assert_eq!(inspector.is_between_requests(), is_between, "{request:?} at {split}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(inspect(&single).1, Inspection::Accepted, "{request:?}");
    }
}

#[test]
fn finds_the_same_fault_wherever_the_bytes_are_split() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(MAX));
    for (head, fault) in [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", FramingFault::BareLineFeed),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", FramingFault::RequestLine),
        ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", FramingFault::Target),
        ("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", FramingFault::FieldName),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", FramingFault::FieldValue),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", FramingFault::ContentLength),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", FramingFault::TransferEncoding),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
            FramingFault::TwoLengths,
        ),
        ("GET / HTTP/1.1\r\n\r\n", FramingFault::Host),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\n",
            FramingFault::UpgradeWithBody,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nx",
            FramingFault::EarlyUpgrade,
        ),
        (&long, FramingFault::TooLarge),
    ] {
        let bytes = [GET.as_bytes(), head.as_bytes()].concat();
        for split in 0..=bytes.len() {
            let (_, inspected) = inspect(&[&bytes[..split], &bytes[split..]]);
            let Inspection::Refused(end, found) = inspected else {
                panic!("{head:?} at {split}: {inspected:?}")
            };
            assert_eq!(found, fault, "{head:?} at {split}");
            assert!(end >= GET.len(), "{head:?} at {split}: requests before the refused one pass");
        }
    }
}

#[test]
fn does_not_inspect_an_accepted_upgrade() {
    let upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let (mut inspector, _) = inspect(&[upgrade.as_bytes()]);
    inspector.upgrade_accepted();
    assert_eq!(inspector.inspect(b"\0\n anything"), Inspection::Accepted);
    let (mut inspector, _) = inspect(&[upgrade.as_bytes()]);
    inspector.upgrade_declined();
    assert_eq!(inspector.inspect(GET.as_bytes()), Inspection::Accepted);
    assert!(inspector.is_between_requests());
}

#[test]
fn accepts_nothing_after_a_refused_head() {
    let (mut inspector, _) = inspect(&[b"GET / HTTP/1.1\n"]);
    assert_eq!(inspector.inspect(GET.as_bytes()), Inspection::InvalidBody);
}

/// For random bytes: the parser behind never completes a head that was not validated, and reads an accepted head to the
/// same end.
#[test]
fn the_parser_completes_only_validated_heads() {
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
    let (mut accepted, mut refused) = (0, 0);
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
        if let Inspection::Refused(end, _) = inspected {
            seen.truncate(end);
            seen.extend(INVALID_BYTES);
        }
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let parsed = httparse::Request::new(&mut fields).parse(&seen);
        match inspected {
            Inspection::Accepted if inspector.is_in_head() => {
                assert!(
                    !matches!(parsed, Ok(httparse::Status::Complete(_))),
                    "{:?}",
                    seen.escape_ascii().to_string()
                );
            }
            Inspection::Accepted => {
                assert!(
                    matches!(parsed, Ok(httparse::Status::Complete(_))),
                    "{:?}",
                    seen.escape_ascii().to_string()
                );
                accepted += 1;
            }
            // A fault of the body leaves the head unchanged.
            Inspection::Refused(end, _) if bytes[..end].windows(4).any(|window| window == b"\r\n\r\n") => {}
            Inspection::Refused(..) => {
                assert!(parsed.is_err(), "{:?}", seen.escape_ascii().to_string());
                refused += 1;
            }
            Inspection::InvalidBody => refused += 1,
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
}
