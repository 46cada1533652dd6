//! What an origin can do wrong, each with one that does: what the client is told, and whether the key is free again.

use std::time::Duration;

use hapax::http::settings::Span;
use tokio::net::TcpListener;

use super::rig::{Origin, Rig, Setup};
use crate::proxy::{Forward, UpstreamOptions};

/// A keyed request. Sent again, it shows what was recorded of it.
const KEYED: &str = "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k-1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

/// What a failure comes to.
struct Expected {
    status: &'static str,
    kind: &'static str,
    /// What the same request gets afterwards: the same again because it ran again, or 409 because nobody knows.
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
async fn an_origin_that_refuses_connections_was_sent_nothing() {
    // The port was free a moment ago, and nobody listens at it now.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    check("refuses", format!("http://{port}"), &NOT_SENT).await;
}

#[tokio::test]
async fn an_origin_whose_name_leads_nowhere_was_sent_nothing() {
    check("no such name", "http://nowhere.invalid:80".to_owned(), &NOT_SENT).await;
}

#[tokio::test]
async fn whatever_goes_wrong_after_a_byte_was_sent_is_uncertain() {
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
async fn an_origin_that_does_not_answer_in_time_is_uncertain() {
    let silent = Origin::start(|mut peer| async move {
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let mut setup = Setup::default();
    setup.upstream.response = Span(Duration::from_millis(20));
    check_with("never answers", silent.url(), &LATE, setup).await;

    let stalls = Origin::start(|mut peer| async move {
        peer.request().await?;
        peer.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await?;
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let mut setup = Setup::default();
    setup.upstream.body_idle = Span(Duration::from_millis(20));
    check_with("stalls within the body", stalls.url(), &LOST, setup).await;
}

/// Statuses of the origin are its own answers, and never a failure of transport.
#[tokio::test]
async fn an_origins_own_server_error_passes() {
    let origin = Origin::answering("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy").await;
    let rig = Rig::before(&origin).await;
    let answer = rig.exchange(KEYED).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nbusy"), "{answer}");
}

#[tokio::test]
async fn nothing_is_sent_twice() {
    let origin = Origin::start(|mut peer| async move { peer.read().await.map(drop) }).await;
    let rig = Rig::before(&origin).await;
    for request in [KEYED, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"] {
        let before = origin.log.connections();
        let answer = rig.exchange(request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert_eq!(origin.log.connections(), before + 1, "{answer}");
    }
}

/// A gRPC call is told in its own way.
#[tokio::test]
async fn a_grpc_call_is_refused_as_grpc_does() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let rig = Rig::start(&[format!("http://{port}")], Setup::default()).await;
    let call = "POST /S/M HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let answer = rig.exchange(call).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("grpc-status: 14\r\n"), "{answer}");
}

/// The part of a body that a client did not send is no fault of the origin.
#[tokio::test]
async fn a_client_that_is_too_slow_is_told_so() {
    let origin = Origin::ok().await;
    let mut setup = Setup::default();
    setup.transport.body_idle = Span(Duration::from_millis(20));
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

#[tokio::test]
async fn an_upstream_that_makes_no_sense_is_refused_at_start() {
    for (addresses, why) in [
        (vec![], "there is no upstream"),
        (vec!["/path"], "names no host"),
        (vec!["ftp://a"], "neither http nor https"),
        (vec!["http://a/path"], "has a path"),
        (vec!["http://a?query"], "has a path"),
        (vec!["http://user@a"], "holds credentials"),
        (vec!["http://a", "b:1"], "neither http nor https"),
    ] {
        let addresses: Vec<http::Uri> = addresses.into_iter().map(|text| text.parse().unwrap()).collect();
        let failure = Forward::new(&addresses, &UpstreamOptions::default()).unwrap_err();
        assert!(format!("{failure:?}").contains(why), "{addresses:?}: {failure:?}");
    }
}
