//! Deadlines that only TLS and HTTP/2 have, and health checks over TLS.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use hapax::http::settings::Span;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

use super::downgrade::{CONTINUATION, END_HEADERS, END_STREAM, HEADERS, SETTINGS, fields, frame};
use super::encrypted::{encrypted, http2_on, pem, tls};
use super::rig::{ENDLESS, Origin, Rig, Setup, read_to_end};
use super::slow::patient;
use crate::proxy::frames::PREFACE;
use crate::proxy::options::Protocol;
use crate::proxy::tls::Certificate;

/// Short enough to wait for. Everything else has an hour.
const SHORT: Span = Span(Duration::from_millis(20));
const LONG: Span = Span(Duration::from_secs(3600));

type Parts = StreamBody<futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// A body that begins and never ends.
fn stalled() -> Parts {
    use futures_util::StreamExt as _;
    let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"half")))]);
    StreamBody::new(first.chain(futures_util::stream::pending()).boxed())
}

fn keyed<B>(body: B) -> Request<B> {
    Request::post("http://shop/orders").header("idempotency-key", "k").body(body).unwrap()
}

#[tokio::test]
async fn an_upstream_that_never_ends_its_handshake_was_sent_nothing() {
    let silent = Origin::start(|mut peer| async move {
        while peer.read().await.is_some() {}
        Some(())
    })
    .await;
    let mut setup = Setup::default();
    setup.upstream.connect = SHORT;
    setup.upstream.ca_file = Some(pem("ca.pem"));
    let rig = Rig::start(&[format!("https://localhost:{}", silent.address.port())], setup).await;
    let request =
        "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    // The deadline may pass before there is a connection, so it is the handshakes that are counted.
    while silent.log.connections() < 2 {
        let answer = rig.exchange(request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(answer.contains("/errors/upstream-unavailable\""), "{answer}");
        assert!(!answer.to_lowercase().contains("idempotency-replayed"), "the key is free: {answer}");
    }
}

#[tokio::test]
async fn a_client_that_never_ends_its_handshake_is_closed() {
    // Nothing, and the beginning of a record that announces more.
    for begun in [b"".as_slice(), b"\x16\x03\x01\x02\x00\x01"] {
        let mut setup = Setup { tls: Some(tls("first")), ..Setup::default() };
        let transport = &mut setup.transport;
        (transport.head, transport.keep_alive, transport.write_idle) = (LONG, LONG, LONG);
        transport.first_byte = SHORT;
        let origin = Origin::ok().await;
        let rig = Rig::start(&[origin.url()], setup).await;
        let mut stream = rig.connect().await;
        stream.write_all(begun).await.unwrap();
        read_to_end(&mut stream).await;
        assert_eq!(origin.log.connections(), 0);
    }
}

#[tokio::test]
async fn a_body_of_http2_that_stops_coming_is_given_up() {
    let origin = Origin::ok().await;
    let mut setup = Setup::default();
    setup.transport.body_idle = SHORT;
    let rig = Rig::start(&[origin.url()], setup).await;
    let io = TokioIo::new(rig.connect().await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let response = sender.send_request(keyed(stalled())).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("/errors/body-incomplete\""), "{body:?}");
    assert_eq!(origin.log.requests(), 0);
}

#[tokio::test]
async fn an_answer_of_http2_that_stops_coming_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service =
                service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(stalled())) });
            let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(http2.serve_connection(TokioIo::new(stream), service));
        }
    });
    let mut setup = Setup::default();
    setup.upstream.protocol = Protocol::Http2;
    setup.upstream.body_idle = SHORT;
    let rig = Rig::start(&[format!("http://{address}")], setup).await;
    let io = TokioIo::new(rig.connect().await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    for expected in [StatusCode::BAD_GATEWAY, StatusCode::CONFLICT] {
        let response = sender.send_request(keyed(Full::<Bytes>::default())).await.unwrap();
        assert_eq!(response.status(), expected);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("/errors/uncertain\""), "{body:?}");
    }
    // Without a key the answer is passed on as it comes, and ends with the pause.
    let plain = Request::post("http://shop/orders").body(Full::default()).unwrap();
    let response = sender.send_request(plain).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.into_body().collect().await.is_err());
}

/// Nothing that is sent besides, and no request before, moves the deadline of a head.
#[tokio::test]
async fn a_head_of_http2_that_never_ends_is_closed() {
    let greeting = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let get = fields(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]);
    let begun = frame(HEADERS, END_STREAM, 1, &get);
    let whole = frame(HEADERS, END_STREAM | END_HEADERS, 1, &get);
    let next = frame(HEADERS, END_STREAM, 3, &get);
    for sent in [
        PREFACE.to_vec(),
        greeting.clone(),
        [&greeting[..], &begun].concat(),
        [&greeting[..], &whole[..whole.len() - 1]].concat(),
        [&greeting[..], &begun, &frame(CONTINUATION, 0, 1, &[])].concat(),
        [&greeting[..], &whole, &next].concat(),
    ] {
        let origin = Origin::ok().await;
        let mut setup = patient();
        setup.transport.head = SHORT;
        let rig = Rig::start(&[origin.url()], setup).await;
        let mut stream = rig.connect().await;
        stream.write_all(&sent).await.unwrap();
        read_to_end(&mut stream).await;
        assert!(origin.log.requests() <= 1);
    }
}

/// The time for a head is over long before the answer comes, in the clear and over TLS.
#[tokio::test]
async fn a_slow_answer_of_http2_outlives_the_time_for_heads() {
    const HEAD: Duration = Duration::from_millis(300);
    let origin = Origin::start(|mut peer| async move {
        loop {
            peer.request().await?;
            tokio::time::sleep(3 * HEAD).await;
            peer.write("HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok").await?;
        }
    })
    .await;
    for certificate in [None, Some(tls("first"))] {
        let mut setup = Setup { tls: certificate, ..patient() };
        setup.transport.head = Span(HEAD);
        let is_encrypted = setup.tls.is_some();
        let rig = Rig::start(&[origin.url()], setup).await;
        let mut sender = match is_encrypted {
            true => http2_on(encrypted(&rig, b"h2").await).await,
            false => http2_on(rig.connect().await).await,
        };
        let response = sender.send_request(keyed(Full::from("order"))).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
    }
}

#[tokio::test]
async fn a_client_that_agrees_on_http2_and_stays_silent_is_closed() {
    let origin = Origin::ok().await;
    let mut setup = Setup { tls: Some(tls("first")), ..patient() };
    setup.transport.head = SHORT;
    let rig = Rig::start(&[origin.url()], setup).await;
    read_to_end(&mut encrypted(&rig, b"h2").await).await;
    assert_eq!(origin.log.connections(), 0);
}

#[tokio::test]
async fn a_head_of_http2_has_only_so_many_fields() {
    let origin = Origin::ok().await;
    let mut setup = patient();
    setup.transport.head_fields_max = 10;
    let rig = Rig::start(&[origin.url()], setup).await;
    let mut sender = http2_on(rig.connect().await).await;
    for (count, expected) in
        [(10, StatusCode::OK), (11, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE), (10, StatusCode::OK)]
    {
        let mut request = Request::get("http://shop/").body(Full::default()).unwrap();
        for number in 0..count {
            request.headers_mut().append("x", number.into());
        }
        assert_eq!(sender.send_request(request).await.unwrap().status(), expected, "{count}");
    }
    assert_eq!(origin.log.requests(), 2);
}

/// A client whose window is shut takes nothing, however lively its connection is.
#[tokio::test]
async fn an_answer_that_a_client_of_http2_does_not_take_is_given_up() {
    for bytes in [2, ENDLESS] {
        let (origin, mut is_ended) = Origin::sending(bytes).await;
        let mut setup = patient();
        setup.transport.write_idle = SHORT;
        let rig = Rig::start(&[origin.url()], setup).await;
        let mut stream = rig.connect().await;
        // The size of a window at first is the fourth setting.
        let shut = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let get = fields(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]);
        let get = frame(HEADERS, END_STREAM | END_HEADERS, 1, &get);
        stream.write_all(&[PREFACE, &shut, &get].concat()).await.unwrap();
        is_ended.recv().await.expect("the origin is not kept for it");
        read_to_end(&mut stream).await;
    }
}

/// Larger than every window, and with a trailer behind.
#[tokio::test]
async fn a_large_answer_reaches_a_client_of_http2_whole() {
    let body: String = (0..200_000).map(|number| format!("{number:>10}")).collect();
    let sent = body.clone();
    let origin = Origin::start(move |mut peer| {
        let body = sent.clone();
        async move {
            peer.request().await?;
            peer.write("HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            peer.write(format!("{:x}\r\n{body}\r\n0\r\nx-sum: 7\r\n\r\n", body.len())).await
        }
    })
    .await;
    let rig = Rig::start(&[origin.url()], patient()).await;
    let mut sender = http2_on(rig.connect().await).await;
    let response = sender.send_request(keyed(Full::default())).await.unwrap();
    let got = response.into_body().collect().await.unwrap();
    assert_eq!(got.trailers().unwrap()["x-sum"], "7");
    assert!(got.to_bytes() == body);
}

/// Answers over TLS, and tells the path of each request.
fn serve_encrypted(listener: TcpListener, seen: UnboundedSender<String>) {
    let certificate = Certificate::read(&tls("first"), false).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (TlsAcceptor::from(certificate.current()), seen.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let told = seen.send(request.uri().path().to_owned());
                async move { told.map(|()| Response::new(Full::<Bytes>::from("ok"))) }
            });
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.ok()?;
                let http1 = hyper::server::conn::http1::Builder::new();
                http1.serve_connection(TokioIo::new(stream), service).await.ok()
            });
        }
    });
}

/// An address that takes connections and cannot prove who it is counts as down; one that comes back over TLS as up.
#[tokio::test]
async fn health_is_checked_over_tls() {
    let (up, later) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let addresses = [up.local_addr().unwrap(), later.local_addr().unwrap()];
    let (seen, mut seen_up) = unbounded_channel();
    serve_encrypted(up, seen);
    // Whoever is here before speaks no TLS: every handshake fails.
    let impostor = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut stream, _) = later.accept().await.unwrap();
            let _hello = stream.read(&mut [0; 512]).await;
            let _closed = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
        later
    });
    let mut setup = Setup::default();
    setup.upstream.ca_file = Some(pem("ca.pem"));
    setup.upstream.health_interval = Span(Duration::from_millis(10));
    setup.upstream.health_timeout = LONG;
    setup.upstream.health_path = Some("/healthy".to_owned());
    let urls = addresses.map(|address| format!("https://localhost:{}", address.port()));
    let rig = Rig::start(&urls, setup).await;
    let later = impostor.await.unwrap();
    let get = "GET /orders HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for _ in 0..4 {
        let answer = rig.exchange(get).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let (seen, mut seen_later) = unbounded_channel();
    serve_encrypted(later, seen);
    assert_eq!(seen_later.recv().await.unwrap(), "/healthy", "it is checked before it is used");
    let mut is_used = false;
    while !is_used {
        rig.exchange(get).await;
        while let Ok(path) = seen_later.try_recv() {
            is_used |= path == "/orders";
        }
    }
    let mut paths = std::iter::from_fn(|| seen_up.try_recv().ok());
    assert!(paths.any(|path| path == "/healthy"));
}
