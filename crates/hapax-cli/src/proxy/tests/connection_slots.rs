//! The limit of connections to the origin: a request waits for a free one, and is refused unsent after a timeout.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::rig::{Origin, Rig, Setup, read_until};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(3600);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn request(key: &str) -> String {
    format!(
        "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: {key}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    )
}

fn one_connection(connection_wait: Duration) -> Setup {
    let mut setup = Setup::default();
    setup.upstream.connections_max = 1;
    setup.upstream.connection_wait = connection_wait;
    setup
}

/// An origin that responds once per permit, and signals every request.
async fn held() -> (Origin, Arc<Semaphore>, UnboundedReceiver<()>) {
    let (came, coming) = unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let permits = gate.clone();
    let origin = Origin::start(move |mut peer| {
        let (came, permits) = (came.clone(), permits.clone());
        async move {
            loop {
                peer.request().await?;
                came.send(()).ok()?;
                permits.acquire().await.ok()?.forget();
                peer.write(OK).await?;
            }
        }
    })
    .await;
    (origin, gate, coming)
}

#[tokio::test]
async fn a_request_without_a_connection_is_refused_and_its_key_stays_free() {
    let (origin, gate, mut coming) = held().await;
    let rig = Arc::new(Rig::start(&[origin.url()], one_connection(SHORT)).await);
    let first = tokio::spawn({
        let rig = rig.clone();
        async move { rig.exchange(request("first")).await }
    });
    coming.recv().await.unwrap();
    let refused = rig.exchange(request("second")).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("/errors/upstream-unavailable\""), "{refused}");
    assert!(refused.contains("\r\nretry-after: "), "{refused}");
    assert_eq!((origin.log.connections(), origin.log.requests()), (1, 1));
    gate.add_permits(2);
    let first = first.await.unwrap();
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    let again = rig.exchange(request("second")).await;
    assert!(again.starts_with("HTTP/1.1 200 ") && !again.contains("replayed"), "the key was free: {again}");
    assert_eq!(origin.log.connections(), 1);
}

#[tokio::test]
async fn a_waiting_request_gets_the_next_free_connection() {
    let (origin, gate, mut coming) = held().await;
    let rig = Arc::new(Rig::start(&[origin.url()], one_connection(LONG)).await);
    let asking: Vec<_> = (0..5)
        .map(|number| {
            let rig = rig.clone();
            tokio::spawn(async move { rig.exchange(request(&format!("k{number}"))).await })
        })
        .collect();
    coming.recv().await.unwrap();
    gate.add_permits(5);
    for asked in asking {
        let answer = asked.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!((origin.log.connections(), origin.log.requests()), (1, 5));
}

#[tokio::test]
async fn an_address_without_a_free_connection_is_skipped() {
    let (full, gate, mut coming) = held().await;
    let free = Origin::ok().await;
    let rig = Arc::new(Rig::start(&[full.url(), free.url()], one_connection(LONG)).await);
    let first = tokio::spawn({
        let rig = rig.clone();
        async move { rig.exchange(request("first")).await }
    });
    coming.recv().await.unwrap();
    for number in 0..4 {
        let answer = rig.exchange(request(&format!("k{number}"))).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!(full.log.requests(), 1);
    gate.add_permits(1);
    assert!(first.await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_tunnel_counts_as_a_connection_until_it_ends() {
    let origin = Origin::start(|mut peer| async move {
        let (head, _) = peer.request().await?;
        if !head.contains("upgrade: echo") {
            return peer.write(OK).await;
        }
        peer.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n")
            .await?;
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let rig = Rig::start(&[origin.url()], one_connection(SHORT)).await;
    let mut tunnel = rig.connect().await;
    let upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n";
    tunnel.write_all(upgrade).await.unwrap();
    read_until(&mut tunnel, b"\r\n\r\n").await;
    assert!(rig.exchange(request("k")).await.starts_with("HTTP/1.1 503 "));
    drop(tunnel);
    while !rig.exchange(request("k")).await.starts_with("HTTP/1.1 200 ") {}
}
