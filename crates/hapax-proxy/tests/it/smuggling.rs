//! Request smuggling over HTTP/1: for any bytes, the origin sees exactly the accepted requests, or the client gets 400 and
//! the connection is closed.

pub(crate) mod accepted;
pub(crate) mod invalid_chunks;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use self::accepted::{ACCEPTED, LAST};
use self::invalid_chunks::{HIDDEN, INVALID_CHUNKS};
use super::rig::{Origin, Rig, Setup, read_to_end, read_until};

/// Heads that are refused, by name. `HIDDEN` follows each of them.
const REFUSED: &[(&str, &str)] = &[
    (
        "both lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "both lengths, the other way",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    ),
    ("two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n"),
    ("the same length twice", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"),
    ("a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 0\r\n\r\n"),
    ("a length with a sign", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc"),
    ("a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
    ("a hexadecimal length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc"),
    ("a fraction", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3.0\r\n\r\nabc"),
    ("a length with a space", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 0\r\n\r\n"),
    ("a length that overflows", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n"),
    ("an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
    ("a length in other digits", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \u{663}\r\n\r\nabc"),
    ("a length by another spelling", "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 4\r\n\r\n"),
    ("another coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
    (
        "identity after chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    ),
    (
        "gzip before chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked twice",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked twice in a list",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked and another",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked with a parameter",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    ),
    ("chunked in quotes", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
    ("chunked after a comma", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"),
    (
        "chunked after a vertical tab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked after a form feed",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0cchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked after a space of another kind",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \u{a0}chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked before a vertical tab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\x0b\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked with a name of its own",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;x\r\n\r\n0\r\n\r\n",
    ),
    ("chunked before a comma", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n0\r\n\r\n"),
    (
        "a folded expectation",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect:\r\n 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    ),
    (
        "a space before the colon of an expectation",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect : 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    ),
    (
        "a control character in an expectation",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: \x0b100-continue\r\nContent-Length: 3\r\n\r\nabc",
    ),
    ("an empty coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"),
    (
        "a coding by another spelling",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a coding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (
        "a space before the colon",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a tab before the colon", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 3\r\n\r\nabc"),
    ("a space before the name", "POST / HTTP/1.1\r\n Host: a\r\nHost: a\r\n\r\n"),
    ("a folded line", "POST / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"),
    ("a folded coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    ("a line folded with a tab", "POST / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tContent-Length: 3\r\n\r\nabc"),
    ("line feeds alone", "POST / HTTP/1.1\nHost: a\n\n"),
    ("one line feed alone", "POST / HTTP/1.1\r\nHost: a\nContent-Length: 3\r\n\r\nabc"),
    ("a line feed alone at the end", "POST / HTTP/1.1\r\nHost: a\r\n\n"),
    ("a line feed before the request", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a carriage return alone", "POST / HTTP/1.1\r\nHost: a\r\nX: b\rContent-Length: 3\r\n\r\nabc"),
    ("two carriage returns", "POST / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n"),
    ("NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n"),
    ("NUL in a name", "GET / HTTP/1.1\r\nHost: a\r\nX\0Y: b\r\n\r\n"),
    ("NUL in the target", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a control character in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n"),
    ("DEL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n"),
    ("no name", "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
    ("no colon", "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"),
    ("a name in brackets", "GET / HTTP/1.1\r\nHost: a\r\n(X): b\r\n\r\n"),
    ("no host", "GET / HTTP/1.1\r\n\r\n"),
    ("an empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("the same host twice", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    ("a list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
    ("a host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    ("a host with credentials", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
    ("absolute form of another host", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("absolute form of another port", "GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("absolute form with credentials", "GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("absolute form of another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a target that is no path", "GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a fragment", "GET /#b HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a star that is no OPTIONS", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a tab for a space", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a space at the end of the line", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
    ("a space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("no version", "GET /\r\nHost: a\r\n\r\n"),
    ("another version", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
    ("a version of its own", "GET / HTTP/01.1\r\nHost: a\r\n\r\n"),
    ("HTTP/2 without its preface", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    ("a method that is none", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("no method", " / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a tunnel to nowhere", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a tunnel with a body", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nContent-Length: 3\r\n\r\nabc"),
    ("two empty lines before the request", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    (
        "an upgrade with a body",
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 3\r\n\r\nabc",
    ),
    (
        "an upgrade with chunks",
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
];

#[tokio::test]
async fn ambiguous_heads_are_refused() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    for (name, head) in REFUSED {
        let answer = rig.exchange(format!("{head}{HIDDEN}")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{name}: {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}: {answer:?}");
        assert_eq!(origin.log.text(), "", "{name}: something was forwarded");
    }
}

#[tokio::test]
async fn ambiguous_heads_are_refused_byte_by_byte() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    for (name, head) in REFUSED {
        let mut stream = rig.connect().await;
        stream.set_nodelay(true).unwrap();
        for byte in format!("{head}{HIDDEN}").as_bytes() {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let answer = read_to_end(&mut stream).await;
        // A connection that was reset during our writes may have lost the response.
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{name}: {answer:?}");
        assert_eq!(origin.log.text(), "", "{name}: something was forwarded");
    }
}

#[tokio::test]
async fn requests_before_a_refused_head_get_their_responses() {
    let first = "GET /first HTTP/1.1\r\nHost: a\r\n\r\n";
    for (name, head) in REFUSED.iter().filter(|(name, _)| !name.contains("before the request")) {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        let answer = rig.exchange(format!("{first}{head}{HIDDEN}")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{name}: {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1 400 ").count(), 1, "{name}: {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{name}: {answer:?}");
        assert_eq!(origin.log.requests(), 1, "{name}: {}", origin.log.text());
    }
}

#[tokio::test]
async fn invalid_chunks_are_refused_with_their_head() {
    for (name, body) in INVALID_CHUNKS {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        for key in ["X-No-Key", "Idempotency-Key"] {
            let head =
                format!("POST / HTTP/1.1\r\nHost: a\r\n{key}: k\r\nTransfer-Encoding: chunked\r\n\r\n");
            let answer = rig.exchange(format!("{head}{body}{HIDDEN}")).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{name}, {key}: {answer:?}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}, {key}: {answer:?}");
        }
        assert_eq!(origin.log.text(), "", "{name}");
    }
}

#[tokio::test]
async fn accepted_requests_are_forwarded_one_to_one() {
    for (name, requests, count) in ACCEPTED {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        let answer = rig.exchange(format!("{requests}{LAST}")).await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), count + 1, "{name}: {answer:?}");
        let got = origin.log.text();
        assert_eq!(origin.log.requests(), count + 1, "{name}: {got}");
        let lower = got.to_ascii_lowercase();
        for never in ["upgrade", "expect", "http2-settings", "x-a:", "connection:", "http://"] {
            assert!(!lower.contains(never), "{name}: {never} was forwarded: {got}");
        }
    }
}

#[tokio::test]
async fn hyper_finds_the_accepted_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let found = Arc::new(AtomicUsize::new(0));
    tokio::spawn({
        let found = found.clone();
        async move {
            while let Ok((stream, _)) = listener.accept().await {
                let found = found.clone();
                let service = service_fn(move |_: Request<Incoming>| {
                    found.fetch_add(1, Ordering::Relaxed);
                    async { Ok::<_, Infallible>(Response::new(String::from("ok"))) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        }
    });
    let rig = Rig::start(&[url], Setup::default()).await;
    for (name, requests, count) in ACCEPTED {
        found.store(0, Ordering::Relaxed);
        let answer = rig.exchange(format!("{requests}{LAST}")).await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), count + 1, "{name}: {answer:?}");
        assert_eq!(found.load(Ordering::Relaxed), count + 1, "{name}");
    }
}

/// Requests an upgrade.
const UPGRADE: &str = "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";

/// Requests on the same connection before the upgrade. Their responses do not decide it.
const BEFORE: [&str; 3] =
    ["", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"];

/// An origin that accepts every upgrade, and then echoes.
async fn accepting() -> Origin {
    Origin::start(|mut peer| async move {
        while !peer.request().await?.0.starts_with("GET /upgrade ") {
            peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
        }
        peer.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await?;
        loop {
            let bytes = peer.read().await?;
            peer.write(bytes).await?;
        }
    })
    .await
}

/// Only the origin accepts an upgrade: until then, bytes after the request belong to no protocol.
#[tokio::test]
async fn bytes_before_an_upgrade_is_accepted_are_refused() {
    for origin in [Origin::ok().await, accepting().await] {
        let rig = Rig::in_front_of(&origin).await;
        for before in BEFORE {
            let answer = rig.exchange(format!("{before}{UPGRADE}{HIDDEN}")).await;
            assert_eq!(answer.matches("HTTP/1.1 400 ").count(), 1, "{before:?}: {answer:?}");
            assert!(!answer.contains("HTTP/1.1 101"), "{before:?}: {answer:?}");
        }
        assert!(!origin.log.text().contains("/hidden"), "{}", origin.log.text());
    }
}

/// Also when it is not the first request of its connection, and when requests are pipelined.
#[tokio::test]
async fn an_accepted_upgrade_is_not_inspected() {
    for (before, waits) in BEFORE.into_iter().flat_map(|before| [(before, false), (before, true)]) {
        let origin = accepting().await;
        let rig = Rig::in_front_of(&origin).await;
        let mut stream = rig.connect().await;
        let (first, then) = if waits { (before, UPGRADE) } else { (&*format!("{before}{UPGRADE}"), "") };
        stream.write_all(first.as_bytes()).await.unwrap();
        if !before.is_empty() {
            read_until(&mut stream, b"\r\n\r\nok").await;
        }
        stream.write_all(then.as_bytes()).await.unwrap();
        let head = read_until(&mut stream, b"\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{before:?} {waits}: {head}");
        for message in ["hello", "GET / HTTP/1.1\nHost : \0\n\n"] {
            stream.write_all(message.as_bytes()).await.unwrap();
            read_until(&mut stream, message.as_bytes()).await;
        }
    }
}

#[tokio::test]
async fn requests_continue_after_a_declined_upgrade() {
    for before in BEFORE {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        let mut stream = rig.connect().await;
        for request in [before, UPGRADE, before, UPGRADE].into_iter().filter(|request| !request.is_empty()) {
            stream.write_all(request.as_bytes()).await.unwrap();
            read_until(&mut stream, b"\r\n\r\nok").await;
        }
        stream.write_all(LAST.as_bytes()).await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{before:?}: {answer:?}");
        assert_eq!(origin.log.requests(), if before.is_empty() { 3 } else { 5 });
    }
}
