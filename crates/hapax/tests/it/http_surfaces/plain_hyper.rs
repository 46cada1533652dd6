//! The layer around a plain hyper server, on real sockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hapax::http::{IdempotencyLayer, RequestBody};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::world::{Effects, World};

/// Echoes the body after the number of this effect.
async fn echo(
    effects: Arc<Effects>,
    request: Request<RequestBody<Incoming>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let number = u8::try_from(effects.happen()).unwrap();
    let body: Bytes = [&[number], &body[..]].concat().into();
    let response = Response::builder()
        .status(StatusCode::CREATED)
        .header("x-part", "one")
        .header("x-part", "two")
        .body(Full::from(body));
    Ok(response.unwrap())
}

async fn serve(world: &World) -> SocketAddr {
    let effects = world.effects.clone();
    let echo = service_fn(move |request| echo(effects.clone(), request));
    let service = IdempotencyLayer::new(&world.hapax).layer(echo);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                server.serve_connection(TokioIo::new(stream), service).await
            });
        }
    });
    address
}

async fn send(
    address: SocketAddr,
    version: Version,
    key: Option<&str>,
    body: &'static [u8],
) -> Response<Bytes> {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(version == Version::HTTP_2)
        .build_http::<Full<Bytes>>();
    let mut request = Request::post(format!("http://{address}/echo")).version(version);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let response = client.request(request.body(Full::from(body)).unwrap()).await.unwrap();
    assert_eq!(response.version(), version);
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn t_04_a_plain_hyper_service_responds_alike_over_http_1_and_2() {
    let world = World::new();
    let address = serve(&world).await;
    let versions = [Version::HTTP_11, Version::HTTP_2];
    for (at, version) in versions.into_iter().enumerate() {
        // The key is the same over both versions: the second one gets the first response.
        let answer = send(address, version, Some("k"), b"\x00\xff").await;
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert_eq!(answer.headers().contains_key("x-idempotent-replayed"), at > 0, "{version:?}");
        assert_eq!(answer.headers().get_all("x-part").iter().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(answer.body(), &b"\x01\x00\xff"[..]);

        let reused = send(address, version, Some("k"), b"another").await;
        assert_eq!(reused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{version:?}");
        assert_eq!(reused.headers()["content-type"], "application/problem+json");
    }
    assert_eq!(world.effects.count(), 1);
    for version in versions {
        let answer = send(address, version, None, b"").await;
        assert!(!answer.headers().contains_key("x-idempotent-replayed"));
    }
    assert_eq!(world.effects.count(), 3);
}

#[tokio::test]
async fn x_07_a_service_that_fails_without_a_response_leaves_the_key_uncertain() {
    let world = World::new();
    let effects = world.effects.clone();
    let fail = service_fn(move |_: Request<RequestBody<Full<Bytes>>>| {
        effects.happen();
        std::future::ready(Err::<Response<Full<Bytes>>, _>("gave up"))
    });
    let service = IdempotencyLayer::new(&world.hapax).layer(fail);
    let request = || Request::post("/").header("idempotency-key", "k").body(Full::default()).unwrap();
    assert_eq!(service.clone().oneshot(request()).await.map(drop), Err("gave up"));
    let again = service.oneshot(request()).await.unwrap();
    assert_eq!(again.status(), StatusCode::CONFLICT);
    let problem = again.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&problem).unwrap();
    assert!(problem["type"].as_str().unwrap().ends_with("/uncertain"));
    assert_eq!(world.effects.count(), 1);
}
