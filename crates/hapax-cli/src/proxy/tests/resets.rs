//! Streams that are reset while their requests run.

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

use super::rig::{Origin, Rig, Setup};

const STREAMS_MAX: u32 = 10;

fn order(number: u32) -> Request<Full<Bytes>> {
    let request = Request::post("http://shop/orders").header("idempotency-key", format!("k{number}"));
    request.body(Full::default()).unwrap()
}

#[tokio::test]
async fn claimed_requests_count_until_they_end_after_a_reset() {
    let (came, mut coming) = unbounded_channel();
    let (open, gate) = watch::channel(false);
    let origin = Origin::start(move |mut peer| {
        let (came, mut gate) = (came.clone(), gate.clone());
        async move {
            loop {
                peer.request().await?;
                came.send(()).ok()?;
                gate.wait_for(|is_open| *is_open).await.ok()?;
                peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
            }
        }
    })
    .await;
    let mut setup = Setup::default();
    setup.transport.streams_max = STREAMS_MAX;
    let rig = Rig::start(&[origin.url()], setup).await;
    let io = TokioIo::new(rig.connect().await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);

    for number in 0..STREAMS_MAX {
        sender.ready().await.unwrap();
        tokio::select! {
            // Dropping the response resets its stream.
            Some(()) = coming.recv() => {}
            answer = sender.send_request(order(number)) => panic!("answered {}", answer.unwrap().status()),
        }
    }
    let more: Vec<_> =
        (STREAMS_MAX..5 * STREAMS_MAX).map(|number| sender.send_request(order(number))).collect();
    for answer in join_all(more).await {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(answer.headers().contains_key("retry-after"));
        let words = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&words).contains("/errors/rate-limited\""), "{words:?}");
    }
    assert_eq!(origin.log.requests(), STREAMS_MAX as usize);

    // They ran to their end, and free their slots.
    open.send(true).unwrap();
    let first = loop {
        sender.ready().await.unwrap();
        let answer = sender.send_request(order(0)).await.unwrap();
        match answer.status() {
            StatusCode::OK => break answer,
            // It is not recorded yet.
            StatusCode::CONFLICT => {}
            status => panic!("answered {status}"),
        }
    };
    assert_eq!(first.headers()["x-idempotent-replayed"], "true");
}

/// An unclaimed request is cancelled with its stream, and the next one waits for that.
#[tokio::test]
async fn unclaimed_requests_end_with_their_stream() {
    let (came, mut coming) = unbounded_channel();
    let origin = Origin::start(move |mut peer| {
        let came = came.clone();
        async move {
            peer.request().await?;
            came.send(()).ok()?;
            while peer.read().await.is_some() {}
            Some(())
        }
    })
    .await;
    let mut setup = Setup::default();
    setup.transport.streams_max = 1;
    let rig = Rig::start(&[origin.url()], setup).await;
    let io = TokioIo::new(rig.connect().await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..5 {
        sender.ready().await.unwrap();
        let plain = Request::post("http://shop/orders").body(Full::<Bytes>::default()).unwrap();
        tokio::select! {
            Some(()) = coming.recv() => {}
            answer = sender.send_request(plain) => panic!("answered {}", answer.unwrap().status()),
        }
    }
}
