//! TLS and HTTP/2 on both sides, with recorded responses.

use bytes::Bytes;
use hapax_proxy::UpstreamProtocol;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::rig::{Origin, Rig, Setup};
use super::tls::{acceptor, http2_on, pem};

/// An HTTP/2 origin that responds with the version, the URI and the body, and adds trailers.
async fn http2_origin(is_encrypted: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let scheme = if is_encrypted { "https" } else { "http" };
    let acceptor = is_encrypted.then(|| acceptor(&[b"h2"]));
    tokio::spawn(async move {
        let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: Request<hyper::body::Incoming>| async move {
                let received = format!("{:?} {}", request.version(), request.uri());
                let body = request.into_body().collect().await?.to_bytes();
                let text = Bytes::from([received.as_bytes(), b" ", &body].concat());
                let mut trailers = http::HeaderMap::new();
                trailers.insert("x-sum", http::HeaderValue::from_static("7"));
                let frames = [Ok::<_, hyper::Error>(Frame::data(text)), Ok(Frame::trailers(trailers))];
                let body = StreamBody::new(futures_util::stream::iter(frames));
                Ok::<_, hyper::Error>(Response::builder().header("trailer", "x-sum").body(body).unwrap())
            });
            match &acceptor {
                None => drop(tokio::spawn(http2.serve_connection(TokioIo::new(stream), service))),
                Some(acceptor) => {
                    let (acceptor, http2) = (acceptor.clone(), http2.clone());
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
async fn connect_is_refused_with_a_problem_over_http2() {
    let (origin, elsewhere) = (Origin::ok().await, Origin::ok().await);
    let rig = Rig::in_front_of(&origin).await;
    let mut sender = http2_on(rig.connect().await).await;
    let target = elsewhere.address.to_string();
    let request = Request::connect(target).body(Full::default()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("/errors/tunnel-refused"), "{body:?}");
    let request = Request::get("http://shop/after").body(Full::default()).unwrap();
    assert_eq!(
        sender.send_request(request).await.unwrap().status(),
        StatusCode::OK,
        "other requests continue"
    );
    assert_eq!((origin.log.requests(), elsewhere.log.connections()), (1, 0));
}

/// The origin sends trailers only where they are requested, as HTTP/1.1 requires.
#[tokio::test]
async fn trailers_of_an_http1_origin_reach_an_http2_client_and_are_replayed() {
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
    let rig = Rig::in_front_of(&origin).await;
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
async fn http2_upstreams_are_reached_with_prior_knowledge_and_over_tls() {
    for is_encrypted in [false, true] {
        let url = http2_origin(is_encrypted).await;
        let mut setup = Setup::default();
        setup.upstream.ca_file = Some(pem("ca.pem"));
        setup.upstream.protocol = if is_encrypted { UpstreamProtocol::Auto } else { UpstreamProtocol::Http2 };
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

/// Over HTTP/2, failures mean the same as over HTTP/1.
#[tokio::test]
async fn http2_failures_have_the_outcomes_of_http1() {
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
        setup.upstream.protocol = UpstreamProtocol::Http2;
        let rig = Rig::start(&[url], setup).await;
        let request = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
        for expected in [status, again] {
            let answer = rig.exchange(request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{name}: {answer}");
        }
    }
}
