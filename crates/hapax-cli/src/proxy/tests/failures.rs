//! Upstream failures: the client's response, and whether the key is free afterwards.

use std::time::Duration;

use tokio::net::TcpListener;

use super::rig::{Origin, Rig, Setup};

/// A keyed request. When it is sent again, the response shows what was recorded.
const KEYED: &str = "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k-1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

/// The outcome of a failure.
struct Expected {
    status: &'static str,
    kind: &'static str,
    /// The status of the same request afterwards: the same if it ran again, or 409 if its outcome is uncertain.
    again: &'static str,
}

const NOT_SENT: Expected = Expected { status: "502", kind: "upstream-unavailable", again: "502" };
const LOST: Expected = Expected { status: "502", kind: "uncertain", again: "409" };
const LATE: Expected = Expected { status: "504", kind: "uncertain", again: "409" };

async fn check(name: &str, url: String, expected: &Expected) {
    check_with(name, url, expected, Setup::default()).await;
}

async fn check_with(name: &str, url: String, expected: &Expected, setup: Setup) {
    let rig = Rig::start(&[url], setup).await;
    let answer = rig.exchange(KEYED).await;
    assert!(answer.starts_with(&format!("HTTP/1.1 {} ", expected.status)), "{name}: {answer}");
    assert!(answer.contains(&format!("hapax.dev/errors/{}\"", expected.kind)), "{name}: {answer}");
    let again = rig.exchange(KEYED).await;
    assert!(again.starts_with(&format!("HTTP/1.1 {} ", expected.again)), "{name}, again: {again}");
}

#[tokio::test]
async fn a_refused_connection_leaves_the_key_free() {
    // The port was free a moment ago, and no process listens on it.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    check("refuses", format!("http://{port}"), &NOT_SENT).await;
}

#[tokio::test]
async fn an_unresolvable_name_leaves_the_key_free() {
    check("no such name", "http://unknown.invalid:80".to_owned(), &NOT_SENT).await;
}

#[tokio::test]
async fn every_failure_after_the_first_byte_is_uncertain() {
    let closes = Origin::start(|mut peer| async move { peer.read().await.map(drop) }).await;
    check("closes after reading", closes.url(), &LOST).await;

    let resets = Origin::start(|mut peer| async move {
        peer.read().await?;
        peer.stream.set_zero_linger().ok()
    })
    .await;
    check("resets", resets.url(), &LOST).await;

    for (name, answer) in [
        ("closes within the head", "HTTP/1.1 200 OK\r\ncontent-le"),
        ("closes after the head", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"),
        ("closes within the body", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"),
        ("closes within chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nha"),
        (
            "closes before the last chunk",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        ),
        ("does not speak HTTP", "SSH-2.0-OpenSSH_9.2\r\n"),
        (
            "changes the protocol unasked",
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        ),
        (
            "has both lengths",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        (
            "has another coding",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        ("has two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx"),
    ] {
        check(name, Origin::answering(answer).await.url(), &LOST).await;
    }
}

#[tokio::test]
async fn a_timeout_is_uncertain() {
    let silent = Origin::start(|mut peer| async move {
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let mut setup = Setup::default();
    setup.upstream.response = Duration::from_millis(20);
    check_with("never answers", silent.url(), &LATE, setup).await;

    let stalls = Origin::start(|mut peer| async move {
        peer.request().await?;
        peer.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await?;
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let mut setup = Setup::default();
    setup.upstream.body_idle = Duration::from_millis(20);
    check_with("stalls within the body", stalls.url(), &LOST, setup).await;
}

/// A status of the origin is its response, and never a failure of transport.
#[tokio::test]
async fn a_server_error_of_the_origin_is_forwarded() {
    let origin = Origin::answering("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy").await;
    let rig = Rig::in_front_of(&origin).await;
    let answer = rig.exchange(KEYED).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nbusy"), "{answer}");
}

#[tokio::test]
async fn no_request_is_sent_twice() {
    let origin = Origin::start(|mut peer| async move { peer.read().await.map(drop) }).await;
    let rig = Rig::in_front_of(&origin).await;
    for request in [KEYED, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"] {
        let before = origin.log.connections();
        let answer = rig.exchange(request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert_eq!(origin.log.connections(), before + 1, "{answer}");
    }
}

#[tokio::test]
async fn a_grpc_call_gets_a_grpc_status() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let rig = Rig::start(&[format!("http://{port}")], Setup::default()).await;
    let call = "POST /S/M HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let answer = rig.exchange(call).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("grpc-status: 14\r\n"), "{answer}");
}

/// An incomplete body is the client's fault, not the origin's.
#[tokio::test]
async fn a_slow_body_is_refused() {
    let origin = Origin::ok().await;
    let mut setup = Setup::default();
    setup.transport.body_idle = Duration::from_millis(20);
    let rig = Rig::start(&[origin.url()], setup).await;
    for (key, status, kind) in
        [("", "408", "uncertain"), ("Idempotency-Key: k\r\n", "400", "body-incomplete")]
    {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{key}Content-Length: 10\r\n\r\nhalf");
        let answer = rig.exchange(request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains(&format!("hapax.dev/errors/{kind}\"")), "{answer}");
    }
}
