//! TLS and HTTP/2, on both sides.

use bytes::Bytes;
use hapax_proxy::{TlsFiles, UpstreamProtocol};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;

use super::rig::{Origin, Rig, Setup, read_to_end};
use super::tls::{acceptor, connect_tls, http2_on, pem, tls_files};

#[tokio::test]
async fn http2_is_served_with_prior_knowledge_and_over_tls() {
    let origin = Origin::ok().await;
    let plain = Rig::in_front_of(&origin).await;
    let secure =
        Rig::start(&[origin.url()], Setup { tls: Some(tls_files("first")), ..Setup::default() }).await;
    let senders = [
        ("http", http2_on(plain.connect().await).await),
        ("https", http2_on(connect_tls(&secure, b"h2").await).await),
    ];
    for (scheme, mut sender) in senders {
        for number in 0..3 {
            let request =
                Request::post(format!("{scheme}://shop/orders?{number}")).body(Full::from("body")).unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_2));
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
        }
        let got = origin.log.text();
        assert!(got.contains(&format!("\r\nx-forwarded-proto: {scheme}\r\n")), "{got}");
    }
    let got = origin.log.text();
    assert_eq!(got.matches("\r\nhost: shop\r\n").count(), 6, "{got}");
    assert_eq!(got.matches("\r\ncontent-length: 4\r\n").count(), 6, "{got}");
    assert_eq!(got.matches("\r\nvia: 2 hapax\r\n").count(), 6, "{got}");
}

#[tokio::test]
async fn an_unverified_upstream_is_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        let acceptor = acceptor(&[b"h2", b"http/1.1"]);
        while let Ok((stream, _)) = listener.accept().await {
            drop(acceptor.accept(stream).await);
        }
    });
    // The platform does not trust the CA of the tests.
    let rig = Rig::start(&[url], Setup::default()).await;
    let answer = rig.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("nothing was sent"), "{answer}");
}

#[tokio::test]
async fn reloading_the_certificate_keeps_connections() {
    let folder = tempfile::tempdir().unwrap();
    let files = TlsFiles { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") };
    let put = |name: &str| {
        std::fs::copy(pem(&format!("{name}.pem")), &files.certificate).unwrap();
        std::fs::copy(pem(&format!("{name}.key")), &files.key).unwrap();
    };
    let subject = |stream: &TlsStream<TcpStream>| {
        let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        let is = |name: &str| certificate.windows(name.len()).any(|window| window == name.as_bytes());
        if is("second") { "second" } else { "first" }
    };
    put("first");
    let origin = Origin::ok().await;
    let rig = Rig::start(&[origin.url()], Setup { tls: Some(files.clone()), ..Setup::default() }).await;
    let old = connect_tls(&rig, b"http/1.1").await;
    assert_eq!(subject(&old), "first");

    put("second");
    rig.listener.reload_tls().unwrap();
    let new = connect_tls(&rig, b"http/1.1").await;
    assert_eq!(subject(&new), "second");

    std::fs::write(&files.certificate, "nothing").unwrap();
    assert!(rig.listener.reload_tls().is_err());
    assert_eq!(subject(&connect_tls(&rig, b"http/1.1").await), "second");

    for mut stream in [old, new] {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
}

#[tokio::test]
async fn an_invalid_handshake_is_closed() {
    let origin = Origin::ok().await;
    let rig = Rig::start(&[origin.url()], Setup { tls: Some(tls_files("first")), ..Setup::default() }).await;
    let answer = rig.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    assert_eq!(origin.log.text(), "");
}

#[tokio::test]
async fn http1_is_served_over_tls() {
    let origin = Origin::ok().await;
    let rig = Rig::start(&[origin.url()], Setup { tls: Some(tls_files("first")), ..Setup::default() }).await;
    let io = TokioIo::new(connect_tls(&rig, b"http/1.1").await);
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/").header("host", "a").body(Full::<Bytes>::default()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);
    assert!(origin.log.text().contains("\r\nx-forwarded-proto: https\r\n"));
}

/// An HTTP/2 connection ends with its last response.
#[tokio::test]
async fn shutdown_ends_http2_connections() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    let mut sender = http2_on(rig.connect().await).await;
    let request = || Request::get("http://a/").body(Full::<Bytes>::default()).unwrap();
    assert_eq!(sender.send_request(request()).await.unwrap().status(), StatusCode::OK);
    rig.shutdown.cancel();
    rig.served.await.unwrap();
    assert!(sender.send_request(request()).await.is_err());
}

/// One connection carries all requests, and is replaced when it is gone.
#[tokio::test]
async fn an_http2_connection_is_shared_and_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (taken, mut is_taken) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|_: Request<hyper::body::Incoming>| async {
                Ok::<_, hyper::Error>(Response::new(Full::<Bytes>::from("ok")))
            });
            let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let served = tokio::spawn(http2.serve_connection(TokioIo::new(stream), service));
            taken.send(served).unwrap();
        }
    });
    let mut setup = Setup::default();
    setup.upstream.protocol = UpstreamProtocol::Http2;
    let rig = Rig::start(&[url], setup).await;
    let get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for _ in 0..2 {
        let all = futures_util::future::join_all((0..20).map(|_| rig.exchange(get))).await;
        assert!(all.iter().all(|answer| answer.ends_with("\r\n\r\nok")), "{all:?}");
        let connection = is_taken.try_recv().expect("one connection was opened");
        assert!(is_taken.try_recv().is_err(), "and no other");
        connection.abort();
        assert!(connection.await.is_err());
        // A request may still meet the end of the old connection.
        while !rig.exchange(get).await.ends_with("\r\n\r\nok") {}
    }
}
