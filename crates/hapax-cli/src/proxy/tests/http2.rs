//! HTTP/2 bodies that stall, and the key of their request.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use hapax_proxy::UpstreamProtocol;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::rig::{Origin, Rig, Setup};
use super::tls::pem;

/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(20);

type Parts = StreamBody<futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// A body that never ends.
fn stalled() -> Parts {
    use futures_util::StreamExt as _;
    let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"half")))]);
    StreamBody::new(first.chain(futures_util::stream::pending()).boxed())
}

fn keyed<B>(body: B) -> Request<B> {
    Request::post("http://shop/orders").header("idempotency-key", "k").body(body).unwrap()
}

#[tokio::test]
async fn a_handshake_timeout_leaves_the_key_free() {
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
    // The timeout may fire before there is a connection, so handshakes are counted.
    while silent.log.connections() < 2 {
        let answer = rig.exchange(request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(answer.contains("/errors/upstream-unavailable\""), "{answer}");
        assert!(!answer.to_lowercase().contains("idempotency-replayed"), "the key is free: {answer}");
    }
}

#[tokio::test]
async fn a_stalled_http2_request_is_refused() {
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
async fn a_stalled_http2_response_is_uncertain() {
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
    setup.upstream.protocol = UpstreamProtocol::Http2;
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
    // Without a key the response streams through and breaks off after the pause.
    let plain = Request::post("http://shop/orders").body(Full::default()).unwrap();
    let response = sender.send_request(plain).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.into_body().collect().await.is_err());
}
