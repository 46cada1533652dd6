//! Connections to the origin: reused, closed, and never the cause of a lost request.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::rig::{Origin, Rig, Setup, read_until};
use hapax_proxy::WorkerThreads;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const KEYED: &str = "POST /orders HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n";

#[tokio::test]
async fn a_connection_is_reused() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ] {
        let origin = Origin::always(answer).await;
        let rig = Rig::in_front_of(&origin).await;
        for number in 0..10 {
            let request = format!("{KEYED}X-Number: {number}\r\nIdempotency-Key: k{number}\r\n\r\n{{}}");
            let request =
                if number % 2 == 0 { request } else { request.replace("Idempotency-Key", "X-Other") };
            let answer = rig.exchange(request).await;
            assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        }
        assert_eq!(origin.log.connections(), 1, "{answer}");
        assert_eq!(origin.log.requests(), 10);
    }
}

/// Unless the limit of connections or of idle connections is reached.
#[tokio::test]
async fn a_worker_reuses_the_connections_that_it_opened() {
    for (connections_max, idle_max, opened) in [(2, 2, 2), (1, 2, 1), (2, 1, 1)] {
        let origin = Origin::ok().await;
        let threads = WorkerThreads::with_count(2).unwrap();
        let mut setup = Setup { workers: Some(threads.workers()), ..Setup::default() };
        (setup.upstream.connections_max, setup.upstream.idle_max) = (connections_max, idle_max);
        let rig = Rig::start(&[origin.url()], setup).await;
        let mut clients = Vec::new();
        for turn in 0..6 {
            if turn < 2 {
                // The first client is still connected, so the second goes to the other worker.
                clients.push(rig.connect().await);
            }
            let client = &mut clients[turn % 2];
            client.write_all(GET).await.unwrap();
            read_until(client, b"\r\n\r\nok").await;
        }
        assert_eq!((origin.log.connections(), origin.log.requests()), (opened, 6));
    }
}

#[tokio::test]
async fn connection_close_is_honoured() {
    let origin =
        Origin::answering("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok").await;
    let rig = Rig::in_front_of(&origin).await;
    let mut stream = rig.connect().await;
    for _ in 0..3 {
        stream.write_all(GET).await.unwrap();
        let answer = read_until(&mut stream, b"\r\n\r\nok").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(!answer.contains("connection:"), "{answer}");
    }
    assert_eq!(origin.log.connections(), 3);
}

/// The origin closes the connection between two requests: the second one uses another.
#[tokio::test]
async fn a_connection_closed_while_idle_fails_no_request() {
    let (closed, mut is_closed) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer| {
        let closed = closed.clone();
        async move {
            peer.request().await?;
            peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
            drop(peer);
            closed.send(()).ok()
        }
    })
    .await;
    let rig = Rig::in_front_of(&origin).await;
    for number in 0..20 {
        let request = format!("{KEYED}Idempotency-Key: k{number}\r\n\r\n{{}}");
        let answer = rig.exchange(request).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{number}: {answer}");
        is_closed.recv().await.unwrap();
    }
    assert_eq!(origin.log.requests(), 20);
}

#[tokio::test]
async fn an_unsolicited_response_is_discarded() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let origin = Origin::start(move |mut peer| async move {
        peer.request().await?;
        peer.write(format!("{answer}{}", answer.replace("ok", "NO"))).await?;
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let rig = Rig::in_front_of(&origin).await;
    for number in 0..5 {
        let answer = rig.exchange(format!("{KEYED}Idempotency-Key: k{number}\r\n\r\n{{}}")).await;
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    }
    assert_eq!(origin.log.connections(), 5);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let (ended, mut is_ended) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer| {
        let ended = ended.clone();
        async move {
            peer.request().await?;
            peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
            while peer.read().await.is_some() {}
            ended.send(()).ok()
        }
    })
    .await;
    let mut setup = Setup::default();
    setup.upstream.keep_alive = Duration::from_millis(20);
    let rig = Rig::start(&[origin.url()], setup).await;
    let mut stream = rig.connect().await;
    stream.write_all(GET).await.unwrap();
    read_until(&mut stream, b"\r\n\r\nok").await;
    is_ended.recv().await.expect("the proxy closes the connection, the client does not");
}

#[tokio::test]
async fn addresses_are_used_round_robin() {
    let (one, two) = (Origin::ok().await, Origin::ok().await);
    let rig = Rig::start(&[one.url(), two.url()], Setup::default()).await;
    let mut stream = rig.connect().await;
    for _ in 0..10 {
        stream.write_all(GET).await.unwrap();
        read_until(&mut stream, b"\r\n\r\nok").await;
    }
    assert_eq!((one.log.requests(), two.log.requests()), (5, 5));
}

#[tokio::test]
async fn an_address_that_is_down_is_skipped() {
    let down = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let up = Origin::ok().await;
    let rig = Rig::start(&[format!("http://{down}"), up.url()], Setup::default()).await;
    let mut stream = rig.connect().await;
    for _ in 0..10 {
        stream.write_all(GET).await.unwrap();
        let answer = read_until(&mut stream, b"\r\n\r\nok").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(up.log.requests(), 10);
}

/// An origin that responds with errors is not down.
#[tokio::test]
async fn statuses_never_eject_an_address() {
    let ok = Origin::ok().await;
    let fails = Origin::start(|mut peer| async move {
        loop {
            peer.request().await?;
            peer.write("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\nok").await?;
        }
    })
    .await;
    let rig = Rig::start(&[ok.url(), fails.url()], Setup::default()).await;
    let mut stream = rig.connect().await;
    for _ in 0..10 {
        stream.write_all(GET).await.unwrap();
        read_until(&mut stream, b"\r\n\r\nok").await;
    }
    assert_eq!((ok.log.requests(), fails.log.requests()), (5, 5));
}

#[tokio::test]
async fn an_address_that_comes_back_is_used_again() {
    let mut setup = Setup::default();
    setup.upstream.health_interval = Duration::from_millis(10);
    setup.upstream.health_path = Some("/healthy".to_owned());
    let up = Origin::ok().await;
    let later = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = later.local_addr().unwrap();
    drop(later);
    let rig = Rig::start(&[up.url(), format!("http://{address}")], setup).await;
    let mut stream = rig.connect().await;
    for _ in 0..4 {
        stream.write_all(GET).await.unwrap();
        read_until(&mut stream, b"\r\n\r\nok").await;
    }
    let (back, mut is_back) = tokio::sync::mpsc::unbounded_channel();
    let later = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = later.accept().await {
            let back = back.clone();
            tokio::spawn(async move {
                loop {
                    let head = read_until(&mut stream, b"\r\n\r\n").await;
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                    if !head.starts_with("GET /healthy ") {
                        back.send(()).unwrap();
                    }
                }
            });
        }
    });
    while is_back.try_recv().is_err() {
        stream.write_all(GET).await.unwrap();
        read_until(&mut stream, b"\r\n\r\nok").await;
    }
    assert!(up.log.text().contains("GET /healthy "));
}

/// Many concurrent clients, and an origin that closes connections now and then: every client gets its own response.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_client_gets_its_own_response() {
    let origin = Origin::start(|mut peer| async move {
        for number in 0.. {
            let (head, body) = peer.request().await?;
            let path = head.split(' ').nth(1)?.to_owned();
            let text = format!("{path} {}", String::from_utf8(body).unwrap());
            let last = if number == 7 { "connection: close\r\n" } else { "" };
            let framed = if number % 2 == 0 {
                format!("content-length: {}\r\n\r\n{text}", text.len())
            } else {
                format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n0\r\n\r\n", text.len())
            };
            peer.write(format!("HTTP/1.1 200 OK\r\n{last}{framed}")).await?;
            if number == 7 {
                return Some(());
            }
        }
        None
    })
    .await;
    let rig = std::sync::Arc::new(Rig::in_front_of(&origin).await);
    let clients = (0..32).map(|client| {
        let rig = rig.clone();
        tokio::spawn(async move {
            for number in 0..20 {
                let key = if number % 2 == 0 { "Idempotency-Key" } else { "X-No-Key" };
                let asked = format!("/{client}/{number} body-{client}-{number}");
                let (path, body) = asked.split_once(' ').unwrap();
                let request = format!(
                    "POST {path} HTTP/1.1\r\nHost: a\r\n{key}: {client}-{number}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                let answer = rig.exchange(request).await;
                assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
                assert!(answer.contains(&asked), "{asked}: {answer}");
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert_eq!(origin.log.requests(), 32 * 20);
}
