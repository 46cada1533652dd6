//! Upgrades, full-duplex bodies, bodies of no length, and header fields.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::rig::{Origin, Rig, Setup, read_to_end, read_until};

#[tokio::test]
async fn an_upgrade_is_forwarded_and_becomes_a_tunnel() {
    let origin = Origin::start(|mut peer| async move {
        let (head, _) = peer.request().await?;
        let lower = head.to_ascii_lowercase();
        assert!(lower.contains("\r\nupgrade: websocket\r\n"), "{head}");
        assert!(lower.contains("\r\nconnection: upgrade\r\n"), "{head}");
        assert!(lower.contains("\r\nsec-websocket-key: abc\r\n"), "{head}");
        let accepted =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello";
        peer.write(accepted).await?;
        loop {
            let bytes = peer.read().await?;
            peer.write(bytes).await?;
        }
    })
    .await;
    let rig = Rig::in_front_of(&origin).await;
    let mut stream = rig.connect().await;
    let upgrade = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    let head = read_until(&mut stream, b"\r\n\r\nhello").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("upgrade: websocket\r\n"), "{head}");
    // Bytes that look like an invalid request are not inspected any more.
    for message in [b"\x81\x05hello".as_slice(), b"GET / HTTP/1.1\nHost : \0\n\n", &[0; 9000]] {
        stream.write_all(message).await.unwrap();
        let mut echo = vec![1; message.len()];
        stream.read_exact(&mut echo).await.unwrap();
        assert_eq!(echo, message);
    }
    rig.shutdown.cancel();
    assert_eq!(read_to_end(&mut stream).await, "");
    rig.served.await.unwrap();
}

#[tokio::test]
async fn expect_100_continue_is_answered() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    let mut stream = rig.connect().await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n").await;
    stream.write_all(b"body").await.unwrap();
    assert!(read_to_end(&mut stream).await.starts_with("HTTP/1.1 200 "));
    let got = origin.log.text();
    assert!(got.ends_with("\r\n\r\nbody") && !got.contains("expect"), "{got}");
}

#[tokio::test]
async fn a_valid_request_id_is_kept_and_another_is_replaced() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    for (id, is_kept) in [("order-7", true), ("a b", false), (&*"x".repeat(129), false)] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: {id}\r\n\r\n");
        let answer = rig.exchange(request).await;
        assert_eq!(answer.contains(&format!("\r\nx-request-id: {id}\r\n")), is_kept, "{answer}");
        assert!(answer.contains("\r\nx-request-id: "), "{answer}");
    }
}

/// A response may begin before its request ends.
#[tokio::test]
async fn bodies_stream_in_both_directions_concurrently() {
    let origin = Origin::start(|mut peer| async move {
        let mut begun = false;
        loop {
            let bytes = peer.read().await?;
            if !begun {
                begun = true;
                peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            }
            if bytes.ends_with(b"0\r\n\r\n") {
                return peer.write("0\r\n\r\n").await;
            }
            if bytes.ends_with(b"ping\r\n") {
                peer.write("4\r\npong\r\n").await?;
            }
        }
    })
    .await;
    let rig = Rig::in_front_of(&origin).await;
    let mut stream = rig.connect().await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..10 {
        stream.write_all(b"4\r\nping\r\n").await.unwrap();
        read_until(&mut stream, b"4\r\npong\r\n").await;
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, "0\r\n\r\n");
}

#[tokio::test]
async fn a_response_without_a_body_ends_with_its_head() {
    for (request, answer, kept) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", "content-length: 10"),
        ("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\netag: \"x\"\r\n\r\n", "etag: \"x\""),
    ] {
        let origin = Origin::always(answer).await;
        let rig = Rig::in_front_of(&origin).await;
        for _ in 0..2 {
            let request = format!("{request} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let answer = rig.exchange(request).await;
            assert!(answer.contains(&format!("\r\n{kept}\r\n")), "{answer}");
            assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        }
        assert_eq!(origin.log.connections(), 1);
    }
}

/// HTTP/1.0 clients may send no host; the origin gets its own.
#[tokio::test]
async fn http_1_0_is_served() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    let answer = rig.exchange("GET / HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    let got = origin.log.text();
    assert!(got.starts_with("GET / HTTP/1.1\r\n"), "{got}");
    assert!(got.contains(&format!("\r\nhost: {}\r\n", origin.address)), "{got}");
}

#[tokio::test]
async fn an_idle_tunnel_is_closed() {
    let origin = Origin::start(|mut peer| async move {
        peer.request().await?;
        peer.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await?;
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let mut setup = Setup::default();
    setup.upstream.tunnel_idle = Duration::from_millis(20);
    let rig = Rig::start(&[origin.url()], setup).await;
    let upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let answer = rig.exchange(upgrade).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
}
