//! Responses that clients do not read.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt as _;

use super::rig::{Origin, Rig, Setup, read_to_end};

const RESPONSE_BYTES: usize = 300_000;

/// An origin that responds with this many bytes.
async fn large() -> Origin {
    Origin::start(|mut peer| async move {
        loop {
            peer.request().await?;
            peer.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {RESPONSE_BYTES}\r\n\r\n")).await?;
            peer.write(vec![7; RESPONSE_BYTES]).await?;
        }
    })
    .await
}

async fn with_budget(bytes: usize, origin: &Origin) -> Rig {
    let mut setup = Setup::default();
    setup.transport.response_bytes_max = bytes;
    Rig::start(&[origin.url()], setup).await
}

/// A client with a small window: it receives only the beginning of a response that is not read.
async fn client(rig: &Rig) -> SendRequest<Full<Bytes>> {
    let io = TokioIo::new(rig.connect().await);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = builder.initial_stream_window_size(1024).handshake(io).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn ask(sender: &mut SendRequest<Full<Bytes>>, key: &str) -> Incoming {
    sender.ready().await.unwrap();
    let request = Request::post("http://shop/orders").header("idempotency-key", key);
    sender.send_request(request.body(Full::default()).unwrap()).await.unwrap().into_body()
}

#[tokio::test]
async fn the_slowest_streams_are_reset_when_the_budget_is_exceeded() {
    let origin = large().await;
    let rig = with_budget(3 * RESPONSE_BYTES, &origin).await;
    let mut sender = client(&rig).await;
    let mut answers = Vec::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        answers.push(ask(&mut sender, key).await);
    }
    let newest = answers.pop().unwrap().collect().await.unwrap().to_bytes();
    assert_eq!(newest.len(), RESPONSE_BYTES);
    let oldest = answers.remove(0).collect().await.unwrap_err();
    assert!(format!("{oldest:?}").contains("CANCEL"), "{oldest:?}");
    // The operation is recorded, and the connection is still open.
    let again = ask(&mut sender, "a").await.collect().await.unwrap().to_bytes();
    assert_eq!(again.len(), RESPONSE_BYTES);
}

#[tokio::test]
async fn replays_of_one_record_share_their_bytes() {
    let origin = large().await;
    let rig = with_budget(3 * RESPONSE_BYTES, &origin).await;
    let mut sender = client(&rig).await;
    let mut answers = Vec::new();
    for _ in 0..30 {
        answers.push(ask(&mut sender, "a").await);
    }
    for answer in answers {
        assert_eq!(answer.collect().await.unwrap().to_bytes().len(), RESPONSE_BYTES);
    }
}

#[tokio::test]
async fn http1_connections_are_closed_when_the_budget_is_exceeded() {
    const BYTES: usize = 50_000_000;
    let (origin, _ended) = Origin::sending(BYTES).await;
    let rig = Arc::new(with_budget(1, &origin).await);
    let mut streams = [rig.connect().await, rig.connect().await];
    for stream in &mut streams {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    }
    let [mut one, mut two] = streams;
    let (one, two) = tokio::join!(read_to_end(&mut one), read_to_end(&mut two));
    let whole = [one, two].map(|answer| answer.len() > BYTES);
    assert!(whole[0] != whole[1], "exactly one response is complete: {whole:?}");
}
