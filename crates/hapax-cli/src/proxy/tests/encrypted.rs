//! TLS and HTTP/2, in and out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};

use super::rig::{Origin, Rig, Setup, read_to_end};
use crate::proxy::Tls;
use crate::proxy::options::Protocol;
use crate::proxy::tls::Certificate;

pub(super) fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/proxy/tests/pem").join(name)
}

pub(super) fn tls(name: &str) -> Tls {
    Tls { certificate: pem(&format!("{name}.pem")), key: pem(&format!("{name}.key")) }
}

pub(super) async fn encrypted(rig: &Rig, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, rig.connect().await).await.unwrap()
}

pub(super) type Http2 = http2::SendRequest<Full<Bytes>>;

pub(super) async fn http2_on(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Http2 {
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(io)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// An origin of HTTP/2 that tells the version, the authority and the body, and adds a trailer.
async fn http2_origin(tls: Option<Tls>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let certificate = tls.map(|tls| Certificate::read(&tls, true).unwrap());
    tokio::spawn(async move {
        let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: Request<hyper::body::Incoming>| async move {
                let said = format!("{:?} {}", request.version(), request.uri());
                let body = request.into_body().collect().await?.to_bytes();
                let text = Bytes::from([said.as_bytes(), b" ", &body].concat());
                let mut trailers = http::HeaderMap::new();
                trailers.insert("x-sum", http::HeaderValue::from_static("7"));
                let frames = [Ok::<_, hyper::Error>(Frame::data(text)), Ok(Frame::trailers(trailers))];
                let body = StreamBody::new(futures_util::stream::iter(frames));
                Ok::<_, hyper::Error>(Response::builder().header("trailer", "x-sum").body(body).unwrap())
            });
            match &certificate {
                None => drop(tokio::spawn(http2.serve_connection(TokioIo::new(stream), service))),
                Some(certificate) => {
                    let acceptor = TlsAcceptor::from(certificate.current());
                    let http2 = http2.clone();
                    tokio::spawn(async move {
                        let stream = acceptor.accept(stream).await.unwrap();
                        http2.serve_connection(TokioIo::new(stream), service).await
                    });
                }
            }
        }
    });
    format!("{scheme}://localhost:{}", address.port())
}

#[tokio::test]
async fn http2_comes_in_with_prior_knowledge_and_over_tls() {
    let origin = Origin::ok().await;
    let plain = Rig::before(&origin).await;
    let safe = Rig::start(&[origin.url()], Setup { tls: Some(tls("first")), ..Setup::default() }).await;
    let senders = [
        ("http", http2_on(plain.connect().await).await),
        ("https", http2_on(encrypted(&safe, b"h2").await).await),
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
async fn a_tunnel_is_refused_in_words_over_http2_too() {
    let (origin, elsewhere) = (Origin::ok().await, Origin::ok().await);
    let rig = Rig::before(&origin).await;
    let mut sender = http2_on(rig.connect().await).await;
    let target = elsewhere.address.to_string();
    let request = Request::connect(target).body(Full::default()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("/errors/tunnel-refused"), "{body:?}");
    let request = Request::get("http://shop/after").body(Full::default()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK, "others go on");
    assert_eq!((origin.log.requests(), elsewhere.log.connections()), (1, 0));
}

/// An origin that sends trailers only where they are asked for, as HTTP/1.1 has it.
#[tokio::test]
async fn trailers_of_an_origin_of_http1_reach_a_client_of_http2_and_are_replayed() {
    let origin = Origin::start(|mut peer| async move {
        loop {
            let (head, _) = peer.request().await?;
            let is_asked = head.contains("\r\nte: trailers\r\n") && head.contains("\r\nconnection: te\r\n");
            let trailers = if is_asked { "x-sum: 7\r\nx-sum: \u{e9}\r\n" } else { "" };
            let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
            peer.write(format!("{answer}{trailers}\r\n")).await?;
        }
    })
    .await;
    let rig = Rig::before(&origin).await;
    let mut sender = http2_on(rig.connect().await).await;
    for (key, replayed) in [(None, None), (Some("k"), None), (Some("k"), Some("true"))] {
        let mut request = Request::post("http://shop/orders").body(Full::from("body")).unwrap();
        if let Some(key) = key {
            request.headers_mut().insert("idempotency-key", HeaderValue::from_static(key));
        }
        let response = sender.send_request(request).await.unwrap();
        let marked =
            response.headers().get("x-idempotent-replayed").map(|mark| mark.to_str().unwrap().to_owned());
        assert_eq!(marked.as_deref(), replayed);
        let body = response.into_body().collect().await.unwrap();
        let sums: Vec<_> =
            body.trailers().unwrap().get_all("x-sum").iter().map(|sum| sum.as_bytes()).collect();
        assert_eq!(sums, [b"7".as_slice(), "\u{e9}".as_bytes()], "{key:?} {replayed:?}");
        assert_eq!(body.to_bytes(), "ok");
    }
    assert_eq!(origin.log.requests(), 2);
}

#[tokio::test]
async fn http2_goes_out_with_prior_knowledge_and_over_tls() {
    for is_encrypted in [false, true] {
        let url = http2_origin(is_encrypted.then(|| tls("first"))).await;
        let mut setup = Setup::default();
        setup.upstream.ca_file = Some(pem("ca.pem"));
        setup.upstream.protocol = if is_encrypted { Protocol::Auto } else { Protocol::Http2 };
        let rig = Rig::start(&[url], setup).await;
        for key in ["", "Idempotency-Key: k\r\n"] {
            let answer = rig
                .exchange(format!(
                    "POST /orders?x HTTP/1.1\r\nHost: shop\r\n{key}TE: trailers\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"
                ))
                .await;
            let scheme = if is_encrypted { "https" } else { "http" };
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            assert!(answer.contains(&format!("HTTP/2.0 {scheme}://shop/orders?x body")), "{answer}");
            assert!(answer.ends_with("0\r\nx-sum: 7\r\n\r\n"), "{answer}");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_nobody_vouches_for_is_sent_nothing() {
    let url = http2_origin(Some(tls("first"))).await;
    // The platform does not know the authority of the tests.
    let rig = Rig::start(&[url], Setup::default()).await;
    let answer = rig.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("upstream-unavailable"), "{answer}");
}

#[tokio::test]
async fn a_certificate_is_exchanged_without_a_connection_lost() {
    let folder = tempfile::tempdir().unwrap();
    let files = Tls { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") };
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
    let old = encrypted(&rig, b"http/1.1").await;
    assert_eq!(subject(&old), "first");

    put("second");
    rig.listener.reload_tls().unwrap();
    let new = encrypted(&rig, b"http/1.1").await;
    assert_eq!(subject(&new), "second");

    std::fs::write(&files.certificate, "nothing").unwrap();
    assert!(rig.listener.reload_tls().is_err());
    assert_eq!(subject(&encrypted(&rig, b"http/1.1").await), "second");

    for mut stream in [old, new] {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
}

#[tokio::test]
async fn a_handshake_that_is_none_is_closed() {
    let origin = Origin::ok().await;
    let rig = Rig::start(&[origin.url()], Setup { tls: Some(tls("first")), ..Setup::default() }).await;
    let answer = rig.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    assert_eq!(origin.log.text(), "");
}

/// hyper's HTTP/1 client over TLS, as most clients are.
#[tokio::test]
async fn http1_comes_in_over_tls() {
    let origin = Origin::ok().await;
    let rig = Rig::start(&[origin.url()], Setup { tls: Some(tls("first")), ..Setup::default() }).await;
    let io = TokioIo::new(encrypted(&rig, b"http/1.1").await);
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/").header("host", "a").body(Full::<Bytes>::default()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);
    assert!(origin.log.text().contains("\r\nx-forwarded-proto: https\r\n"));
}

/// Stopping lets an HTTP/2 connection end with its last answer.
#[tokio::test]
async fn stopping_ends_http2_too() {
    let origin = Origin::ok().await;
    let rig = Rig::before(&origin).await;
    let mut sender = http2_on(rig.connect().await).await;
    let request = || Request::get("http://a/").body(Full::<Bytes>::default()).unwrap();
    assert_eq!(sender.send_request(request()).await.unwrap().status(), StatusCode::OK);
    rig.stop.cancel();
    rig.served.await.unwrap();
    assert!(sender.send_request(request()).await.is_err());
}

/// An origin of HTTP/2 does wrong what others do, and it means the same.
#[tokio::test]
async fn failures_of_http2_mean_what_they_do_elsewhere() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let closes = Origin::start(|mut peer| async move { peer.read().await.map(drop) }).await;
    let other = Origin::start(|mut peer| async move {
        peer.read().await?;
        peer.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await
    })
    .await;
    for (name, url, status, again) in [
        ("refuses", format!("http://{free}"), "502", "502"),
        ("closes", closes.url(), "502", "409"),
        ("speaks HTTP/1.1", other.url(), "502", "409"),
    ] {
        let mut setup = Setup::default();
        setup.upstream.protocol = Protocol::Http2;
        let rig = Rig::start(&[url], setup).await;
        let request = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
        for expected in [status, again] {
            let answer = rig.exchange(request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{name}: {answer}");
        }
    }
}

/// One connection carries all requests, and another takes its place when it is gone.
#[tokio::test]
async fn a_connection_of_http2_is_shared_and_replaced() {
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
    setup.upstream.protocol = Protocol::Http2;
    let rig = Rig::start(&[url], setup).await;
    let get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for _ in 0..2 {
        let all = futures_util::future::join_all((0..20).map(|_| rig.exchange(get))).await;
        assert!(all.iter().all(|answer| answer.ends_with("\r\n\r\nok")), "{all:?}");
        let connection = is_taken.try_recv().expect("a connection was made");
        assert!(is_taken.try_recv().is_err(), "and only one");
        connection.abort();
        assert!(connection.await.is_err());
        // A request may still meet the end of the old connection.
        while !rig.exchange(get).await.ends_with("\r\n\r\nok") {}
    }
}
