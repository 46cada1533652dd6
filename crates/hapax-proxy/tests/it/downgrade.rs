//! HTTP/2 to HTTP/1.1: requests that have no unambiguous equivalent are refused, others get the proxy's framing. The
//! client writes raw frames, for real clients correct them.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::rig::{Origin, Rig, read_to_end};

const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
/// `:status: 200` in the static table of HPACK.
const STATUS_200: u8 = 0x88;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Fields as HPACK literals without indexing.
pub(crate) fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    fields
        .iter()
        .flat_map(|(name, value)| {
            let mut field = vec![0, u8::try_from(name.len()).unwrap()];
            field.extend(name.as_bytes());
            field.push(u8::try_from(value.len()).unwrap());
            field.extend(value.as_bytes());
            field
        })
        .collect()
}

/// Sends one request; whether the response is 200.
async fn is_accepted(rig: &Rig, head: &[(&str, &str)], body: &str) -> bool {
    let mut stream = rig.connect().await;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes.extend(frame(HEADERS, END_HEADERS, 1, &fields(head)));
    bytes.extend(frame(DATA, END_STREAM, 1, body.as_bytes()));
    stream.write_all(&bytes).await.unwrap();
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return false;
        }
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await.unwrap();
        match head[3] {
            HEADERS => return payload[0] == STATUS_200,
            RST_STREAM | GOAWAY => return false,
            _ => {}
        }
    }
}

pub(crate) const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":path", "/x"), (":authority", "a")];
const BODY: &str = "GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n";

/// Fields that are added to the usual head, or replace pseudo-header fields.
const REFUSED: &[(&str, &[(&str, &str)])] = &[
    ("a coding", &[("transfer-encoding", "chunked")]),
    ("a coding in capitals", &[("Transfer-Encoding", "chunked")]),
    ("a connection", &[("connection", "close")]),
    ("keep-alive", &[("keep-alive", "5")]),
    ("another protocol", &[("upgrade", "x")]),
    ("a connection to a proxy", &[("proxy-connection", "close")]),
    ("other trailers", &[("te", "chunked")]),
    ("a shorter length", &[("content-length", "3")]),
    ("a longer length", &[("content-length", "999")]),
    ("two lengths", &[("content-length", "33"), ("content-length", "33")]),
    ("a length that is no number", &[("content-length", "+33")]),
    ("a length by another spelling", &[("content_length", "33")]),
    ("a coding by another spelling", &[("transfer_encoding", "chunked")]),
    ("another host", &[("host", "b")]),
    ("two hosts", &[("host", "a"), ("host", "a")]),
    ("a line in a value", &[("x", "y\r\nz: 1")]),
    ("a request in a value", &[("x", "y\r\n\r\nGET /hidden HTTP/1.1\r\nhost: a\r\n\r\n")]),
    ("a line feed in a value", &[("x", "y\nz: 1")]),
    ("a carriage return in a value", &[("x", "y\rz: 1")]),
    ("NUL in a value", &[("x", "y\0")]),
    ("NUL in a name", &[("x\0", "1")]),
    ("a line feed in a name", &[("x\ny", "1")]),
    ("a carriage return in a name", &[("x\ry", "1")]),
    ("a line in a name", &[("x: y\r\nz", "1")]),
    ("a colon in a name", &[("x:y", "1")]),
    ("a space in a name", &[("x y", "1")]),
    ("an empty name", &[("", "1")]),
    ("a request in the path", &[(":path", "/ HTTP/1.1\r\nhost: a\r\n\r\nGET /hidden")]),
    ("a space in the path", &[(":path", "/x HTTP/1.1")]),
    ("a path that is none", &[(":path", "x")]),
    ("an empty path", &[(":path", "")]),
    ("another script in the path", &[(":path", "/\u{e9}")]),
    ("another script in the query", &[(":path", "/x?\u{e9}")]),
    ("NUL in the path", &[(":path", "/x\0")]),
    ("a tab in the path", &[(":path", "/x\ty")]),
    ("a star that is no OPTIONS", &[(":path", "*")]),
    ("a line in the method", &[(":method", "GET /hidden HTTP/1.1\r\nhost: a\r\n\r\nPOST")]),
    ("a space in the method", &[(":method", "GET /hidden")]),
    ("a tunnel", &[(":method", "CONNECT")]),
    ("a line in the authority", &[(":authority", "a\r\nx: y")]),
    ("credentials", &[(":authority", "u@a")]),
    ("a path in the authority", &[(":authority", "a/b")]),
    ("a pseudo field of its own", &[(":x", "y")]),
];

#[tokio::test]
async fn requests_without_an_http1_equivalent_are_refused() {
    for (name, changed) in REFUSED {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        let replaces = |field: &str| changed.iter().any(|(name, _)| *name == field);
        let mut head: Vec<_> = POST.into_iter().filter(|(field, _)| !replaces(field)).collect();
        head.extend_from_slice(changed);
        head.sort_by_key(|(field, _)| !field.starts_with(':'));
        assert!(!is_accepted(&rig, &head, BODY).await, "{name}");
        let got = origin.log.text();
        // A wrong length shows only at the end of the body, when the head may have been sent.
        assert!(got.is_empty() || name.ends_with("er length"), "{name}: {got}");
        assert!(!got.contains("/hidden"), "{name}: {got}");
    }
}

/// With and without fields in the frames.
#[tokio::test]
async fn endless_continuation_frames_are_refused() {
    for more in [fields(&[("x", "y")]), Vec::new()] {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        let (mut read, mut write) = rig.connect().await.into_split();
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(SETTINGS, 0, 0, &[]));
        bytes.extend(frame(HEADERS, END_STREAM, 1, &fields(&POST)));
        let flood = tokio::spawn(async move {
            write.write_all(&bytes).await?;
            loop {
                write.write_all(&frame(CONTINUATION, 0, 1, &more)).await?;
            }
            #[allow(unreachable_code)]
            Ok::<(), std::io::Error>(())
        });
        read_to_end(&mut read).await;
        assert!(flood.await.unwrap().is_err());
        assert_eq!(origin.log.text(), "");
    }
}

#[tokio::test]
async fn a_request_without_a_host_is_refused() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    assert!(!is_accepted(&rig, &POST[..3], BODY).await);
    assert_eq!(origin.log.text(), "");
}

#[tokio::test]
async fn a_body_that_looks_like_a_request_stays_a_body() {
    for (name, more) in [
        ("no length", [].as_slice()),
        ("its length", &[("content-length", "33")]),
        ("the same host", &[("host", "A")]),
        ("trailers", &[("te", "trailers")]),
    ] {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        let mut head = POST.to_vec();
        head.extend_from_slice(more);
        assert!(is_accepted(&rig, &head, BODY).await, "{name}");
        let got = origin.log.text();
        assert!(got.starts_with("POST /x HTTP/1.1\r\n"), "{name}: {got}");
        let is_framed =
            got.contains("\r\ntransfer-encoding: chunked\r\n") != got.contains("\r\ncontent-length: 33\r\n");
        assert!(is_framed, "{name}: {got}");
        assert_eq!(origin.log.connections(), 1);
    }
    assert_eq!(BODY.len(), 33);
}
