//! Slow clients: each one is closed or refused, with a problem document where a request was complete.

use std::sync::Arc;
use std::time::Duration;

use hapax::http::IdempotencyLayer;
use hapax::{Hapax, MemoryStore};
use hapax_core::Store;
use hapax_store_file::FileStore;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tower_layer::Layer;

use super::rig::{Origin, Rig, Setup, read_to_end};
use super::upstream;

/// Short enough to wait for. All other timeouts are an hour.
const SHORT: Duration = Duration::from_millis(20);

/// Sends this and no more. The one short timeout closes the connection, after a response that contains `expected`.
async fn is_closed(setup: Setup, sent: &[u8], expected: &str) {
    let origin = Origin::ok().await;
    let rig = Rig::start(&[origin.url()], setup).await;
    let mut stream = rig.connect().await;
    stream.write_all(sent).await.unwrap();
    let got = read_to_end(&mut stream).await;
    assert!(got.contains(expected), "{:?}: {got:?}", String::from_utf8_lossy(sent));
}

#[tokio::test]
async fn a_slow_client_is_closed() {
    let mut setup = Setup::with_long_timeouts();
    setup.transport.first_byte = SHORT;
    is_closed(setup, b"", "").await;

    for head in ["G", "GET / HTTP/1.1\r\nHost: a\r\n", "\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n"] {
        let mut setup = Setup::with_long_timeouts();
        setup.transport.head = SHORT;
        is_closed(setup, head.as_bytes(), "").await;
    }

    let mut setup = Setup::with_long_timeouts();
    setup.transport.keep_alive = SHORT;
    is_closed(setup, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK").await;

    // The head of a second request has its own deadline.
    let mut setup = Setup::with_long_timeouts();
    setup.transport.head = SHORT;
    is_closed(setup, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT", "200 OK").await;

    for (key, kind) in [("", "uncertain"), ("Idempotency-Key: k\r\n", "body-incomplete")] {
        for body in ["Content-Length: 9\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"] {
            let mut setup = Setup::with_long_timeouts();
            setup.transport.body_idle = SHORT;
            let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{key}{body}");
            is_closed(setup, request.as_bytes(), kind).await;
        }
    }

    // An incomplete HTTP/2 preface, and a preface with nothing after it.
    let mut setup = Setup::with_long_timeouts();
    setup.transport.first_byte = SHORT;
    is_closed(setup, b"PRI * HTTP/2.0\r\n", "").await;
    let mut setup = Setup::with_long_timeouts();
    setup.transport.keep_alive = SHORT;
    is_closed(setup, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "").await;
}

/// Also when the response took longer than the keep-alive timeout, on every kind of store.
#[tokio::test]
async fn an_idle_connection_is_closed_after_a_slow_response() {
    let origin = Origin::start(|mut peer| async move {
        loop {
            peer.request().await?;
            // Slower than the keep-alive timeout.
            tokio::time::sleep(3 * SHORT).await;
            peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
        }
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn Store>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(FileStore::open(dir.path()).unwrap())];
    for store in stores {
        for field in ["X-Other", "Idempotency-Key"] {
            let mut setup = Setup::with_long_timeouts();
            setup.transport.keep_alive = SHORT;
            let forward = upstream(&[origin.url()], &setup);
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

/// Short pauses keep within the idle timeout, but not the minimum rate.
#[tokio::test]
async fn a_body_below_the_minimum_rate_is_refused() {
    let origin = Origin::ok().await;
    let mut setup = Setup::with_long_timeouts();
    setup.transport.body_idle = Duration::from_millis(50);
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
