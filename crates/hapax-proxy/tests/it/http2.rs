//! Timeouts and limits of TLS and HTTP/2, and health checks over TLS.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::downgrade::{CONTINUATION, END_HEADERS, END_STREAM, HEADERS, SETTINGS, fields, frame};
use super::rig::{ENDLESS, Origin, Rig, Setup, read_to_end};
use super::tls::{acceptor, connect_tls, http2_on, pem, tls_files};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Short enough to wait for. All other timeouts are an hour.
const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(3600);

fn post(body: Full<Bytes>) -> Request<Full<Bytes>> {
    Request::post("http://shop/orders").body(body).unwrap()
}

#[tokio::test]
async fn an_incomplete_handshake_is_closed() {
    // No byte, and the beginning of a TLS record.
    for begun in [b"".as_slice(), b"\x16\x03\x01\x02\x00\x01"] {
        let mut setup = Setup { tls: Some(tls_files("first")), ..Setup::default() };
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

/// Neither other frames nor an earlier request move the deadline of a header block.
#[tokio::test]
async fn an_incomplete_http2_header_block_is_closed() {
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
        let mut setup = Setup::with_long_timeouts();
        setup.transport.head = SHORT;
        let rig = Rig::start(&[origin.url()], setup).await;
        let mut stream = rig.connect().await;
        stream.write_all(&sent).await.unwrap();
        read_to_end(&mut stream).await;
        assert!(origin.log.requests() <= 1);
    }
}

/// The response takes longer than the head timeout, with and without TLS.
#[tokio::test]
async fn the_head_timeout_does_not_limit_an_http2_response() {
    const HEAD: Duration = Duration::from_millis(300);
    let origin = Origin::start(|mut peer| async move {
        loop {
            peer.request().await?;
            tokio::time::sleep(3 * HEAD).await;
            peer.write("HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok").await?;
        }
    })
    .await;
    for certificate in [None, Some(tls_files("first"))] {
        let mut setup = Setup { tls: certificate, ..Setup::with_long_timeouts() };
        setup.transport.head = HEAD;
        let is_encrypted = setup.tls.is_some();
        let rig = Rig::start(&[origin.url()], setup).await;
        let mut sender = match is_encrypted {
            true => http2_on(connect_tls(&rig, b"h2").await).await,
            false => http2_on(rig.connect().await).await,
        };
        let response = sender.send_request(post(Full::from("order"))).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
    }
}

#[tokio::test]
async fn a_client_that_is_silent_after_alpn_is_closed() {
    let origin = Origin::ok().await;
    let mut setup = Setup { tls: Some(tls_files("first")), ..Setup::with_long_timeouts() };
    setup.transport.head = SHORT;
    let rig = Rig::start(&[origin.url()], setup).await;
    read_to_end(&mut connect_tls(&rig, b"h2").await).await;
    assert_eq!(origin.log.connections(), 0);
}

#[tokio::test]
async fn fields_of_an_http2_head_are_limited() {
    let origin = Origin::ok().await;
    let mut setup = Setup::with_long_timeouts();
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

/// A client with a window of 0 reads nothing of its response, however active its connection is.
#[tokio::test]
async fn a_stalled_http2_response_is_abandoned() {
    for bytes in [2, ENDLESS] {
        let (origin, mut is_ended) = Origin::sending(bytes).await;
        let mut setup = Setup::with_long_timeouts();
        setup.transport.write_idle = SHORT;
        let rig = Rig::start(&[origin.url()], setup).await;
        let mut stream = rig.connect().await;
        // SETTINGS_INITIAL_WINDOW_SIZE is 4.
        let shut = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let get = fields(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]);
        let get = frame(HEADERS, END_STREAM | END_HEADERS, 1, &get);
        stream.write_all(&[PREFACE, &shut, &get].concat()).await.unwrap();
        is_ended.recv().await.expect("the connection to the origin is released");
        read_to_end(&mut stream).await;
    }
}

/// Larger than every window, and with trailers.
#[tokio::test]
async fn a_large_response_reaches_an_http2_client_completely() {
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
    let rig = Rig::start(&[origin.url()], Setup::with_long_timeouts()).await;
    let mut sender = http2_on(rig.connect().await).await;
    let response = sender.send_request(post(Full::default())).await.unwrap();
    let got = response.into_body().collect().await.unwrap();
    assert_eq!(got.trailers().unwrap()["x-sum"], "7");
    assert!(got.to_bytes() == body);
}

/// Serves over TLS, and sends the path of each request.
fn serve_tls(listener: TcpListener, seen: UnboundedSender<String>) {
    let acceptor = acceptor(&[b"http/1.1"]);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), seen.clone());
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

/// An address that accepts connections without TLS is down; once it speaks TLS, it is up.
#[tokio::test]
async fn health_checks_use_tls() {
    let (up, later) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let addresses = [up.local_addr().unwrap(), later.local_addr().unwrap()];
    let (seen, mut seen_up) = unbounded_channel();
    serve_tls(up, seen);
    // The first server at this address speaks no TLS: every handshake fails.
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
    setup.upstream.health_interval = Duration::from_millis(10);
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
    serve_tls(later, seen);
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
