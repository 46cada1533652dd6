//! Streams, trailers, large bodies and header fields, with and without a key.

use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::io::AsyncWriteExt;

use super::rig::{Origin, Rig, Setup, read_to_end, read_until};
use super::tls::{connect_tls, http2_on, tls_files};

#[tokio::test]
async fn a_claimed_request_does_not_forward_an_upgrade_offer() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    let request = "POST /orders HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}";
    let answer = rig.exchange(request).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(!origin.log.text().to_ascii_lowercase().contains("upgrade"), "{}", origin.log.text());
    let again = rig.exchange(request).await;
    assert!(again.contains("x-idempotent-replayed: true"), "{again}");
}

#[tokio::test]
async fn events_stream_one_by_one() {
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
    let rig = Rig::in_front_of(&origin).await;
    for key in ["", "Idempotency-Key: k\r\n"] {
        let mut stream = rig.connect().await;
        let request = format!(
            "POST /events HTTP/1.1\r\nHost: a\r\n{key}Connection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        for number in 0..5 {
            // The origin sends the next event only after this one arrived.
            read_until(&mut stream, format!("data: {number}\n\n\r\n").as_bytes()).await;
            next.send(()).unwrap();
        }
        assert_eq!(read_to_end(&mut stream).await, "0\r\n\r\n");
    }
}

#[tokio::test]
async fn trailers_are_forwarded_in_both_directions() {
    let origin = Origin::start(|mut peer| async move {
        peer.request().await?;
        peer.write("HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n")
            .await
    })
    .await;
    let rig = Rig::in_front_of(&origin).await;
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
async fn the_origin_gets_the_client_s_address_and_no_reserved_field() {
    let origin = Origin::answering(
        "HTTP/1.1 200 OK\r\nconnection: x-hop\r\nx-hop: 1\r\nkeep-alive: 5\r\nidempotency-outcome: pin\r\ncontent-length: 2\r\n\r\nok",
    )
    .await;
    let rig = Rig::in_front_of(&origin).await;
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

/// Larger than every buffer on the way, in either framing, streamed or read by the layer.
#[tokio::test]
async fn large_bodies_are_forwarded_in_both_directions() {
    let origin = Origin::start(|mut peer| async move {
        loop {
            let (_, body) = peer.request().await?;
            peer.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len())).await?;
            peer.write(body).await?;
        }
    })
    .await;
    let rig = Rig::in_front_of(&origin).await;
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

/// Some services refuse a POST without `Content-Length`.
#[tokio::test]
async fn an_empty_body_has_a_content_length() {
    const LENGTH_FIELD: &str = "\r\ncontent-length: 0\r\n";
    let origin = Origin::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let rig = Rig::in_front_of(&origin).await;
    for (method, sent, is_sent) in [
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
        assert_eq!(got.matches(LENGTH_FIELD).count(), usize::from(is_sent), "{method} {sent:?}: {got}");
    }
    let before = origin.log.text().len();
    let mut sender = http2_on(rig.connect().await).await;
    let request = Request::post("http://shop/orders").body(Full::default()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);
    let got = &origin.log.text()[before..];
    assert_eq!(got.matches(LENGTH_FIELD).count(), 1, "over HTTP/2: {got}");
}

/// With and without TLS, whether the request is claimed or not.
#[tokio::test]
async fn a_half_closed_client_gets_its_responses() {
    let origin = Origin::start(|mut peer| async move {
        loop {
            peer.request().await?;
            // The proxy sees the client's end of stream before the response.
            tokio::time::sleep(Duration::from_millis(50)).await;
            peer.write("HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\nma").await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
            peer.write("de").await?;
        }
    })
    .await;
    let plain = Rig::in_front_of(&origin).await;
    let secure =
        Rig::start(&[origin.url()], Setup { tls: Some(tls_files("first")), ..Setup::default() }).await;
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
        let mut encrypted = connect_tls(&secure, b"http/1.1").await;
        encrypted.write_all(requests.as_bytes()).await.unwrap();
        encrypted.shutdown().await.unwrap();
        for answers in [read_to_end(&mut in_the_clear).await, read_to_end(&mut encrypted).await] {
            assert_eq!(answers.matches("HTTP/1.1 201 Created\r\n").count(), 2, "{key}: {answers}");
            assert!(answers.ends_with("\r\n\r\nmade"), "{key}: {answers}");
        }
    }
}
