//! Requests that are refused with a problem document, and nothing after them is read.

#[path = "../../../../hapax-proxy/tests/it/smuggling/invalid_chunks.rs"]
mod invalid_chunks;

use tokio::io::AsyncWriteExt;

use self::invalid_chunks::{HIDDEN, INVALID_CHUNKS};
use super::rig::{Origin, Rig, read_to_end, read_until};

/// The request is in flight by then: it fails, and the bytes after it are not read.
#[tokio::test]
async fn invalid_chunks_after_the_head_end_their_request() {
    for (name, body) in INVALID_CHUNKS {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        for (key, kind) in [("X-No-Key", "uncertain"), ("Idempotency-Key", "body-incomplete")] {
            let mut stream = rig.connect().await;
            let head = format!(
                "POST / HTTP/1.1\r\nHost: a\r\n{key}: k\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            read_until(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n").await;
            stream.write_all(format!("3\r\nabc\r\n{body}{HIDDEN}").as_bytes()).await.unwrap();
            let answer = read_to_end(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{name}, {key}: {answer:?}");
            assert!(answer.contains(&format!("/errors/{kind}\"")), "{name}, {key}: {answer:?}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}, {key}: {answer:?}");
        }
        assert!(origin.log.requests() <= 1, "{name}: {}", origin.log.text());
        assert!(!origin.log.text().contains("/hidden"), "{name}: {}", origin.log.text());
    }
}

/// Bytes after CONNECT are not read as requests.
#[tokio::test]
async fn connect_is_refused_with_a_problem_and_nothing_is_sent() {
    let elsewhere = Origin::ok().await;
    for rest in ["", HIDDEN, "\u{16}\u{3}\u{1}"] {
        let origin = Origin::ok().await;
        let rig = Rig::in_front_of(&origin).await;
        let target = elsewhere.address;
        let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nIdempotency-Key: k\r\n\r\n");
        let answer = rig.exchange(format!("{head}{rest}")).await;
        assert!(answer.starts_with("HTTP/1.1 501 "), "{rest:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{rest:?}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        assert!(answer.contains("\r\ncontent-type: application/problem+json\r\n"), "{answer}");
        assert!(answer.contains("https://hapax.dev/errors/tunnel-refused"), "{answer}");
        assert_eq!((origin.log.connections(), elsewhere.log.connections()), (0, 0), "{rest:?}");
    }
}
