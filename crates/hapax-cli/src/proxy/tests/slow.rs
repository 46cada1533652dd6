//! Clients that take their time: each is closed, and none is closed who is only being served.

use std::sync::Arc;
use std::time::Duration;

use hapax::http::IdempotencyLayer;
use hapax::http::settings::Span;
use hapax::{Hapax, MemoryStore};
use hapax_core::Store;
use hapax_store_file::FileStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tower_layer::Layer;

use super::rig::{ENDLESS, Origin, Rig, Setup, read_to_end, read_until};
use crate::proxy::Forward;

/// Short enough to wait for, and long enough for nothing: all others are an hour.
const SHORT: Span = Span(Duration::from_millis(20));
const LONG: Span = Span(Duration::from_secs(3600));

/// Waits an hour for everything.
pub(super) fn patient() -> Setup {
    let mut setup = Setup::default();
    let transport = &mut setup.transport;
    for span in [
        &mut transport.first_byte,
        &mut transport.head,
        &mut transport.body_idle,
        &mut transport.keep_alive,
        &mut transport.write_idle,
    ] {
        *span = LONG;
    }
    setup
}

/// A client that sends this and no more. The one deadline that is short closes its connection.
async fn is_closed(setup: Setup, sent: &[u8], answer: &str) {
    let origin = Origin::ok().await;
    let rig = Rig::start(&[origin.url()], setup).await;
    let mut stream = rig.connect().await;
    stream.write_all(sent).await.unwrap();
    let got = read_to_end(&mut stream).await;
    assert!(got.contains(answer), "{:?}: {got:?}", String::from_utf8_lossy(sent));
}

#[tokio::test]
async fn whoever_takes_too_long_is_closed() {
    let mut setup = patient();
    setup.transport.first_byte = SHORT;
    is_closed(setup, b"", "").await;

    for head in ["G", "GET / HTTP/1.1\r\nHost: a\r\n", "\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n"] {
        let mut setup = patient();
        setup.transport.head = SHORT;
        is_closed(setup, head.as_bytes(), "").await;
    }

    let mut setup = patient();
    setup.transport.keep_alive = SHORT;
    is_closed(setup, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK").await;

    // The head of a second request has its own deadline.
    let mut setup = patient();
    setup.transport.head = SHORT;
    is_closed(setup, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT", "200 OK").await;

    for (key, kind) in [("", "uncertain"), ("Idempotency-Key: k\r\n", "body-incomplete")] {
        for body in ["Content-Length: 9\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"] {
            let mut setup = patient();
            setup.transport.body_idle = SHORT;
            let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{key}{body}");
            is_closed(setup, request.as_bytes(), kind).await;
        }
    }

    // The preface of HTTP/2, and nothing after it or not even all of it.
    let mut setup = patient();
    setup.transport.first_byte = SHORT;
    is_closed(setup, b"PRI * HTTP/2.0\r\n", "").await;
    let mut setup = patient();
    setup.transport.keep_alive = SHORT;
    is_closed(setup, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "").await;
}

/// Also when the answer took longer than that, and whoever the connection waited for last.
#[tokio::test]
async fn whoever_asks_nothing_more_after_a_slow_answer_is_closed() {
    let origin = Origin::start(|mut peer| async move {
        loop {
            peer.request().await?;
            // An origin that is slower than a connection may be unused.
            tokio::time::sleep(3 * SHORT.0).await;
            peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
        }
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn Store>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(FileStore::open(dir.path()).unwrap())];
    for store in stores {
        for field in ["X-Other", "Idempotency-Key"] {
            let mut setup = patient();
            setup.transport.keep_alive = SHORT;
            let forward = Forward::new(&[origin.url().parse().unwrap()], &setup.upstream).unwrap();
            let hapax = Hapax::builder(store.clone()).sweep(None).build();
            let rig = Rig::serve(IdempotencyLayer::new(&hapax).layer(forward), setup).await;
            let request =
                format!("POST /orders HTTP/1.1\r\nHost: a\r\n{field}: k\r\nContent-Length: 2\r\n\r\n{{}}");
            let closed = timeout(Duration::from_secs(60), rig.exchange(request)).await;
            let got = closed.unwrap_or_else(|_| panic!("{field}: the connection is still open"));
            assert!(got.ends_with("\r\n\r\nok"), "{field}: {got}");
        }
    }
}

/// A head that comes byte by byte has one deadline for all of it: a drip does not move it.
#[tokio::test]
async fn a_head_that_drips_is_closed() {
    let origin = Origin::ok().await;
    let mut setup = patient();
    setup.transport.head = SHORT;
    // Nothing but the deadline may end it.
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

/// A body that drips keeps every pause short, and is still too slow.
#[tokio::test]
async fn a_body_that_drips_is_given_up() {
    let origin = Origin::ok().await;
    let mut setup = patient();
    setup.transport.body_idle = Span(Duration::from_millis(50));
    setup.transport.body_rate_min = u64::MAX / 4;
    let rig = Rig::start(&[origin.url()], setup).await;
    let (mut read, mut write) = rig.connect().await.into_split();
    tokio::spawn(async move {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 100000\r\n\r\n";
        write.write_all(head.as_bytes()).await?;
        loop {
            write.write_all(b"x").await?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        #[allow(unreachable_code)]
        Ok::<(), std::io::Error>(())
    });
    let answer = read_to_end(&mut read).await;
    assert!(answer.contains("body-incomplete"), "{answer}");
    assert_eq!(origin.log.requests(), 0);
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_closed() {
    let (origin, mut is_ended) = Origin::sending(ENDLESS).await;
    let mut setup = patient();
    setup.transport.write_idle = SHORT;
    let rig = Rig::start(&[origin.url()], setup).await;
    let mut stream = rig.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    is_ended.recv().await.expect("the origin's connection ends with the client's");
}

/// The time that an origin takes is not the client's.
#[tokio::test]
async fn nobody_is_closed_while_being_served() {
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
    let mut setup = patient();
    setup.transport.keep_alive = SHORT;
    setup.transport.head = SHORT;
    setup.transport.body_idle = SHORT;
    let rig = Rig::start(&[origin.url()], setup).await;
    let mut stream = rig.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    read_until(&mut stream, b"\r\n\r\nsl").await;
    // Long enough for every short deadline to pass, if it were counted.
    tokio::time::sleep(SHORT.0 * 5).await;
    go.send(()).unwrap();
    assert_eq!(read_to_end(&mut stream).await, "ow");
}

#[tokio::test]
async fn a_head_beyond_its_limits_is_refused() {
    let origin = Origin::ok().await;
    let mut setup = patient();
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
async fn there_are_only_so_many_connections() {
    for (all, of_peer) in [(2, 0), (100, 2)] {
        let origin = Origin::ok().await;
        let mut setup = patient();
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
        // The place is free once the proxy has seen that its connection ended.
        while !rig.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.contains("200 OK")
        {
        }
    }
}

#[tokio::test]
async fn stopping_finishes_what_began_and_closes_the_rest() {
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
    let rig = Rig::start(&[origin.url()], patient()).await;
    let mut silent = rig.connect().await;
    let mut idle = rig.connect().await;
    idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    read_until(&mut idle, b"\r\n\r\nok").await;
    let mut busy = rig.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    read_until(&mut busy, b"\r\n\r\nsl").await;

    rig.stop.cancel();
    assert_eq!(read_to_end(&mut silent).await, "");
    assert_eq!(read_to_end(&mut idle).await, "");
    assert!(!rig.served.is_finished());
    go.send(()).unwrap();
    assert_eq!(read_to_end(&mut busy).await, "ow");
    rig.served.await.unwrap();
}
