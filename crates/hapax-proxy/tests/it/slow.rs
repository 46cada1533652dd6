//! Slow clients: each one is closed, and none that is only being served.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::rig::{ENDLESS, Origin, Rig, Setup, read_to_end, read_until};

/// Short enough to wait for. All other timeouts are an hour.
const SHORT: Duration = Duration::from_millis(20);

/// A head has one deadline for all of it: bytes that drip in do not move it (slowloris).
#[tokio::test]
async fn a_slow_head_is_closed() {
    let origin = Origin::ok().await;
    let mut setup = Setup::with_long_timeouts();
    setup.transport.head = SHORT;
    // Only the deadline may end it.
    setup.transport.head_bytes_max = usize::MAX / 2;
    let rig = Rig::start(&[origin.url()], setup).await;
    let (mut read, mut write) = rig.connect().await.into_split();
    let drip = tokio::spawn(async move {
        write.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await?;
        loop {
            write.write_all(b"X: y\r\n").await?;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        #[allow(unreachable_code)]
        Ok::<(), std::io::Error>(())
    });
    let mut end = Vec::new();
    let _reset = read.read_to_end(&mut end).await;
    assert_eq!(end, b"");
    assert!(drip.await.unwrap().is_err());
    assert_eq!(origin.log.requests(), 0);
}

#[tokio::test]
async fn a_client_that_does_not_read_its_response_is_closed() {
    let (origin, mut is_ended) = Origin::sending(ENDLESS).await;
    let mut setup = Setup::with_long_timeouts();
    setup.transport.write_idle = SHORT;
    let rig = Rig::start(&[origin.url()], setup).await;
    let mut stream = rig.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    is_ended.recv().await.expect("the origin's connection ends with the client's");
}

/// The time that an origin takes does not count against the client.
#[tokio::test]
async fn no_timeout_fires_while_a_request_is_served() {
    let (go, is_go) = tokio::sync::oneshot::channel::<()>();
    let is_go = std::sync::Arc::new(tokio::sync::Mutex::new(Some(is_go)));
    let origin = Origin::start(move |mut peer| {
        let is_go = is_go.clone();
        async move {
            peer.request().await?;
            peer.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nsl").await?;
            let is_go = is_go.lock().await.take()?;
            is_go.await.ok()?;
            peer.write("ow").await
        }
    })
    .await;
    let mut setup = Setup::with_long_timeouts();
    setup.transport.keep_alive = SHORT;
    setup.transport.head = SHORT;
    setup.transport.body_idle = SHORT;
    let rig = Rig::start(&[origin.url()], setup).await;
    let mut stream = rig.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    read_until(&mut stream, b"\r\n\r\nsl").await;
    // Long enough for every short timeout to fire.
    tokio::time::sleep(SHORT * 5).await;
    go.send(()).unwrap();
    assert_eq!(read_to_end(&mut stream).await, "ow");
}

#[tokio::test]
async fn a_head_beyond_the_limits_is_refused() {
    let origin = Origin::ok().await;
    let mut setup = Setup::with_long_timeouts();
    setup.transport.head_bytes_max = 1000;
    setup.transport.head_fields_max = 10;
    let rig = Rig::start(&[origin.url()], setup).await;
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(1000));
    let endless = format!("GET /{}", "y".repeat(5000));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(11));
    for (head, status) in [(long, "400"), (endless, "400"), (many, "431")] {
        let answer = rig.exchange(&head).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
    }
    assert_eq!(origin.log.text(), "");
}

#[tokio::test]
async fn connections_are_limited_in_total_and_per_peer() {
    for (all, of_peer) in [(2, 0), (100, 2)] {
        let origin = Origin::ok().await;
        let mut setup = Setup::with_long_timeouts();
        setup.transport.connections_max = all;
        setup.transport.connections_per_peer_max = of_peer;
        let rig = Rig::start(&[origin.url()], setup).await;
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut stream = rig.connect().await;
            stream.write_all(get.as_bytes()).await.unwrap();
            read_until(&mut stream, b"\r\n\r\nok").await;
            open.push(stream);
        }
        assert_eq!(rig.exchange(get).await, "", "a third one is closed");
        drop(open);
        // The permit is free once the proxy has seen the end of a connection.
        while !rig.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.contains("200 OK")
        {
        }
    }
}

#[tokio::test]
async fn shutdown_finishes_requests_in_flight_and_closes_idle_connections() {
    let (go, is_go) = tokio::sync::oneshot::channel::<()>();
    let is_go = std::sync::Arc::new(tokio::sync::Mutex::new(Some(is_go)));
    let origin = Origin::start(move |mut peer| {
        let is_go = is_go.clone();
        async move {
            let (head, _) = peer.request().await?;
            if head.starts_with("GET /slow") {
                peer.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nsl").await?;
                let is_go = is_go.lock().await.take()?;
                is_go.await.ok()?;
                return peer.write("ow").await;
            }
            peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await
        }
    })
    .await;
    let rig = Rig::start(&[origin.url()], Setup::with_long_timeouts()).await;
    let mut silent = rig.connect().await;
    let mut idle = rig.connect().await;
    idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    read_until(&mut idle, b"\r\n\r\nok").await;
    let mut busy = rig.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    read_until(&mut busy, b"\r\n\r\nsl").await;

    rig.shutdown.cancel();
    assert_eq!(read_to_end(&mut silent).await, "");
    assert_eq!(read_to_end(&mut idle).await, "");
    assert!(!rig.served.is_finished());
    go.send(()).unwrap();
    assert_eq!(read_to_end(&mut busy).await, "ow");
    rig.served.await.unwrap();
}
