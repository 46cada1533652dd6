//! What is more than one question and one answer: other protocols, endless answers, trailers, fields on their way.

use std::time::Duration;

use hapax::http::settings::Span;
use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::encrypted::{encrypted, http2_on, tls};
use super::rig::{Origin, Rig, Setup, read_to_end, read_until};

#[tokio::test]
async fn another_protocol_passes_once_the_origin_agrees() {
    let origin = Origin::start(|mut peer| async move {
        let (head, _) = peer.request().await?;
        let lower = head.to_ascii_lowercase();
        assert!(lower.contains("\r\nupgrade: websocket\r\n"), "{head}");
        assert!(lower.contains("\r\nconnection: upgrade\r\n"), "{head}");
        assert!(lower.contains("\r\nsec-websocket-key: abc\r\n"), "{head}");
        let agreed =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello";
        peer.write(agreed).await?;
        loop {
            let bytes = peer.read().await?;
            peer.write(bytes).await?;
        }
    })
    .await;
    let rig = Rig::before(&origin).await;
    let mut stream = rig.connect().await;
    let wish = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\n";
    stream.write_all(wish.as_bytes()).await.unwrap();
    let head = read_until(&mut stream, b"\r\n\r\nhello").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("upgrade: websocket\r\n"), "{head}");
    // What looks like an odd request is no request any more.
    for message in [b"\x81\x05hello".as_slice(), b"GET / HTTP/1.1\nHost : \0\n\n", &[0; 9000]] {
        stream.write_all(message).await.unwrap();
        let mut echo = vec![1; message.len()];
        stream.read_exact(&mut echo).await.unwrap();
        assert_eq!(echo, message);
    }
    rig.stop.cancel();
    assert_eq!(read_to_end(&mut stream).await, "");
    rig.served.await.unwrap();
}

#[tokio::test]
async fn a_keyed_request_asks_for_no_other_protocol_than_the_layer_leaves() {
    let origin = Origin::ok().await;
    let rig = Rig::before(&origin).await;
    let request = "POST /orders HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}";
    let answer = rig.exchange(request).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(!origin.log.text().to_ascii_lowercase().contains("upgrade"), "{}", origin.log.text());
    let again = rig.exchange(request).await;
    assert!(again.contains("x-idempotent-replayed: true"), "{again}");
}

#[tokio::test]
async fn events_pass_one_by_one() {
    let (next, is_next) = tokio::sync::mpsc::unbounded_channel::<()>();
    let is_next = std::sync::Arc::new(tokio::sync::Mutex::new(is_next));
    let origin = Origin::start(move |mut peer| {
        let is_next = is_next.clone();
        async move {
            peer.request().await?;
            peer.write(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            )
            .await?;
            for number in 0..5 {
                peer.write(format!("9\r\ndata: {number}\n\n\r\n")).await?;
                is_next.lock().await.recv().await?;
            }
            peer.write("0\r\n\r\n").await
        }
    })
    .await;
    let rig = Rig::before(&origin).await;
    for key in ["", "Idempotency-Key: k\r\n"] {
        let mut stream = rig.connect().await;
        let request = format!(
            "POST /events HTTP/1.1\r\nHost: a\r\n{key}Connection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        for number in 0..5 {
            // The origin sends the next one only after this one arrived.
            read_until(&mut stream, format!("data: {number}\n\n\r\n").as_bytes()).await;
            next.send(()).unwrap();
        }
        assert_eq!(read_to_end(&mut stream).await, "0\r\n\r\n");
    }
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let origin = Origin::start(|mut peer| async move {
        peer.request().await?;
        peer.write("HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n")
            .await
    })
    .await;
    let rig = Rig::before(&origin).await;
    for key in ["", "Idempotency-Key: k\r\n"] {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: a\r\n{key}TE: trailers\r\nConnection: close, te\r\nTrailer: x-check\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Check: 9\r\n\r\n"
        );
        let answer = rig.exchange(request).await;
        assert!(answer.ends_with("\r\n0\r\nx-sum: 7\r\n\r\n"), "{answer}");
    }
    let got = origin.log.text();
    assert_eq!(got.matches("\r\n0\r\nx-check: 9\r\n\r\n").count(), 2, "{got}");
    assert_eq!(got.matches("\r\nte: trailers\r\n").count(), 2, "{got}");
}

#[tokio::test]
async fn a_client_that_waits_to_be_told_is_told_to_go_on() {
    let origin = Origin::ok().await;
    let rig = Rig::before(&origin).await;
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
async fn the_origin_is_told_who_asks_and_nothing_in_our_name() {
    let origin = Origin::answering(
        "HTTP/1.1 200 OK\r\nconnection: x-hop\r\nx-hop: 1\r\nkeep-alive: 5\r\nidempotency-outcome: pin\r\ncontent-length: 2\r\n\r\nok",
    )
    .await;
    let rig = Rig::before(&origin).await;
    let answer = rig
        .exchange(
            "GET /a//b/%2e?q HTTP/1.1\r\nHost: shop:80\r\nConnection: close, X-Mine, X-Forwarded-For, X-Request-Id\r\nX-Mine: 1\r\n\
             X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Request-Id: dropped\r\nVia: 1.0 other\r\n\
             X_Forwarded_For: 6.6.6.6\r\nx-Forwarded_for: 6.6.6.6\r\nX_Request_Id: dropped\r\nIdempotency_Operation: 7\r\nIdempotency_Attempt: 7\r\n\
             Idempotency_Outcome: pin\r\nIdempotency-Outcome: pin\r\nX-Idempotent-Replayed: true\r\nIdempotency-Recorded: true\r\nProxy-Authorization: x\r\n\
             traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=b\r\n\r\n",
        )
        .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for gone in ["x-hop", "keep-alive", "idempotency-outcome"] {
        assert!(!answer.contains(gone), "{gone}: {answer}");
    }
    let got = origin.log.text();
    assert!(got.starts_with("GET /a//b/%2e?q HTTP/1.1\r\n"), "{got}");
    for line in [
        "host: shop:80",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-proto: http",
        "x-forwarded-host: shop:80",
        "via: 1.0 other, 1.1 hapax",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate: a=b",
    ] {
        assert!(got.contains(&format!("\r\n{line}\r\n")), "{line}: {got}");
    }
    for gone in ["6.6.6.6", "x-mine", "dropped", "idempot", "proxy-auth", "connection"] {
        assert!(!got.contains(gone), "{gone}: {got}");
    }
    let id = got.split("\r\nx-request-id: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(id.len(), 32);
    assert!(answer.contains(&format!("\r\nx-request-id: {id}\r\n")), "{answer}");
}

#[tokio::test]
async fn a_sound_request_id_is_kept_and_another_is_not() {
    let origin = Origin::ok().await;
    let rig = Rig::before(&origin).await;
    for (id, is_kept) in [("order-7", true), ("a b", false), (&*"x".repeat(129), false)] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: {id}\r\n\r\n");
        let answer = rig.exchange(request).await;
        assert_eq!(answer.contains(&format!("\r\nx-request-id: {id}\r\n")), is_kept, "{answer}");
        assert!(answer.contains("\r\nx-request-id: "), "{answer}");
    }
}

/// Larger than every buffer on the way, in either framing, passed or read by the layer.
#[tokio::test]
async fn large_bodies_pass_both_ways() {
    let origin = Origin::start(|mut peer| async move {
        loop {
            let (_, body) = peer.request().await?;
            peer.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len())).await?;
            peer.write(body).await?;
        }
    })
    .await;
    let rig = Rig::before(&origin).await;
    let body: String = (0..200_000).map(|number| format!("{number:>10}")).collect();
    let chunks: String = body
        .as_bytes()
        .chunks(100_000)
        .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), std::str::from_utf8(chunk).unwrap()))
        .collect();
    for key in ["X-No-Key", "Idempotency-Key"] {
        for framed in [
            format!("{key}: k1\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
            format!("{key}: k2\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"),
        ] {
            let (mut read, mut write) = rig.connect().await.into_split();
            let request = format!("PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{framed}");
            let sent = tokio::spawn(async move {
                write.write_all(request.as_bytes()).await.unwrap();
                write
            });
            let answer = read_to_end(&mut read).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{key}: {}", &answer[..200.min(answer.len())]);
            assert!(answer.ends_with(&body), "{key}");
            drop(sent.await.unwrap());
        }
    }
}

/// An answer may begin before its request ends.
#[tokio::test]
async fn both_ways_at_once() {
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
    let rig = Rig::before(&origin).await;
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
async fn an_answer_without_a_body_ends_with_its_head() {
    for (request, answer, kept) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", "content-length: 10"),
        ("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\netag: \"x\"\r\n\r\n", "etag: \"x\""),
    ] {
        let origin = Origin::always(answer).await;
        let rig = Rig::before(&origin).await;
        for _ in 0..2 {
            let request = format!("{request} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let answer = rig.exchange(request).await;
            assert!(answer.contains(&format!("\r\n{kept}\r\n")), "{answer}");
            assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        }
        assert_eq!(origin.log.connections(), 1);
    }
}

/// Old clients say no host; the origin is told its own.
#[tokio::test]
async fn a_request_of_http_1_0_is_served() {
    let origin = Origin::ok().await;
    let rig = Rig::before(&origin).await;
    let answer = rig.exchange("GET / HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    let got = origin.log.text();
    assert!(got.starts_with("GET / HTTP/1.1\r\n"), "{got}");
    assert!(got.contains(&format!("\r\nhost: {}\r\n", origin.address)), "{got}");
}

#[tokio::test]
async fn a_tunnel_that_nobody_uses_is_closed() {
    let origin = Origin::start(|mut peer| async move {
        peer.request().await?;
        peer.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await?;
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let mut setup = Setup::default();
    setup.upstream.tunnel_idle = Span(Duration::from_millis(20));
    let rig = Rig::start(&[origin.url()], setup).await;
    let wish = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let answer = rig.exchange(wish).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
}

/// Some services refuse a request that may have a body and does not say how long it is.
#[tokio::test]
async fn a_body_of_no_bytes_is_said_to_have_none() {
    const SAID: &str = "\r\ncontent-length: 0\r\n";
    let origin = Origin::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let rig = Rig::before(&origin).await;
    for (method, sent, is_said) in [
        ("POST", "Content-Length: 0\r\n", true),
        ("PUT", "Content-Length: 0\r\n", true),
        ("PATCH", "Content-Length: 0\r\n", true),
        ("POST", "", true),
        ("POST", "Idempotency-Key: one\r\nContent-Length: 0\r\n", true),
        ("POST", "Idempotency-Key: two\r\n", true),
        ("DELETE", "Content-Length: 0\r\n", true),
        ("DELETE", "", false),
        ("GET", "", false),
    ] {
        let before = origin.log.text().len();
        let request = format!("{method} /orders HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{sent}\r\n");
        let answer = rig.exchange(request).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{method} {sent:?}: {answer}");
        let got = &origin.log.text()[before..];
        assert_eq!(got.matches(SAID).count(), usize::from(is_said), "{method} {sent:?}: {got}");
    }
    let before = origin.log.text().len();
    let mut sender = http2_on(rig.connect().await).await;
    let request = Request::post("http://shop/orders").body(Full::default()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);
    let got = &origin.log.text()[before..];
    assert_eq!(got.matches(SAID).count(), 1, "over HTTP/2: {got}");
}

/// In the clear and over TLS, whether the request was claimed or passes.
#[tokio::test]
async fn a_client_that_sends_no_more_gets_its_answers() {
    let origin = Origin::start(|mut peer| async move {
        loop {
            peer.request().await?;
            // The proxy sees the end of what its client sends before the answer.
            tokio::time::sleep(Duration::from_millis(50)).await;
            peer.write("HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\nma").await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
            peer.write("de").await?;
        }
    })
    .await;
    let plain = Rig::before(&origin).await;
    let safe = Rig::start(&[origin.url()], Setup { tls: Some(tls("first")), ..Setup::default() }).await;
    for key in ["X-No-Key", "Idempotency-Key"] {
        let requests: String = ["a", "b"]
            .iter()
            .map(|name| {
                format!("POST /orders HTTP/1.1\r\nHost: a\r\n{key}: {name}\r\nContent-Length: 2\r\n\r\n{{}}")
            })
            .collect();
        let mut in_the_clear = plain.connect().await;
        in_the_clear.write_all(requests.as_bytes()).await.unwrap();
        in_the_clear.shutdown().await.unwrap();
        let mut encrypted = encrypted(&safe, b"http/1.1").await;
        encrypted.write_all(requests.as_bytes()).await.unwrap();
        encrypted.shutdown().await.unwrap();
        for answers in [read_to_end(&mut in_the_clear).await, read_to_end(&mut encrypted).await] {
            assert_eq!(answers.matches("HTTP/1.1 201 Created\r\n").count(), 2, "{key}: {answers}");
            assert!(answers.ends_with("\r\n\r\nmade"), "{key}: {answers}");
        }
    }
}
