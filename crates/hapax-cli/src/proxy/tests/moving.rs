//! Connections that leave their lane for another one.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use hapax::http::settings::Span;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::timeout;
use tower_service::Service;

use super::encrypted::{encrypted, http2_on, tls};
use super::rig::{Origin, Rig, Setup, read_until};
use crate::proxy::LaneThreads;
use crate::proxy::lanes::Lanes;
use crate::proxy::received::Received;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LONG_ENOUGH: Duration = Duration::from_secs(60);
/// As much as no buffers of the system hold.
const LONG: usize = 32 << 20;

/// Answers with what this comes to.
#[derive(Clone)]
struct Answers<F>(F);

impl<F, R> Service<Request<Received>> for Answers<F>
where
    F: Fn() -> R,
    R: Future<Output = Bytes> + Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Received>) -> Self::Future {
        let answer = self.0();
        Box::pin(async move { Ok(Response::new(Full::new(answer.await))) })
    }
}

fn lane_here() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// A proxy on two lanes that tells on which one it answers.
async fn telling(setup: Setup) -> (Rig, Lanes, LaneThreads) {
    on_two_lanes(setup, || async { Bytes::from(lane_here()) }).await
}

async fn on_two_lanes<R>(
    setup: Setup,
    answers: impl Fn() -> R + Clone + Send + Sync + 'static,
) -> (Rig, Lanes, LaneThreads)
where
    R: Future<Output = Bytes> + Send + 'static,
{
    let threads = LaneThreads::start_some(2).unwrap();
    let lanes = threads.lanes();
    let rig = Rig::serve(Answers(answers), Setup { lanes: Some(lanes.clone()), ..setup }).await;
    (rig, lanes, threads)
}

/// The lane that a request is answered on.
async fn ask(client: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    client.write_all(GET).await.unwrap();
    let head = read_until(client, b"\r\n\r\n").await;
    assert!(head.contains("content-length: 12\r\n"), "{head}");
    let mut body = [0; 12];
    client.read_exact(&mut body).await.unwrap();
    String::from_utf8_lossy(&body).into_owned()
}

/// Asks until it is answered on this lane. A connection may have begun its next request before it was to leave.
async fn ask_until(client: &mut (impl AsyncRead + AsyncWrite + Unpin), lane: &str) {
    for _ in 0..1000 {
        if ask(client).await == lane {
            return;
        }
    }
    panic!("it never leaves");
}

async fn until(reached: impl Fn() -> bool) {
    let reached = async {
        while !reached() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG_ENOUGH, reached).await.expect("it comes to that");
}

/// The one connection is on this lane.
async fn is_on(lanes: &Lanes, lane: usize) {
    until(|| lanes.connections(lane) == 1).await;
}

/// Keeps a lane from doing anything, until it is dropped.
struct Stopped {
    _goes_on: std::sync::mpsc::Sender<()>,
}

impl Stopped {
    async fn lane(lanes: &Lanes, lane: usize) -> Self {
        let (goes_on, until) = std::sync::mpsc::channel();
        let (stops, is_stopped) = tokio::sync::oneshot::channel();
        lanes.runtime(lane).spawn(async move {
            stops.send(()).unwrap();
            let _ = until.recv();
        });
        is_stopped.await.unwrap();
        Self { _goes_on: goes_on }
    }
}

async fn goes_along(client: &mut (impl AsyncRead + AsyncWrite + Unpin), lanes: &Lanes) {
    assert_eq!(ask(client).await, "hapax-lane-0");
    lanes.dismiss_one(0, 1);
    ask_until(client, "hapax-lane-1").await;
    let stopped = Stopped::lane(lanes, 0).await;
    for _ in 0..3 {
        assert_eq!(ask(client).await, "hapax-lane-1", "the lane that it left is not needed for anything");
    }
    drop(stopped);
    lanes.dismiss_one(1, 0);
    ask_until(client, "hapax-lane-0").await;
}

#[tokio::test]
async fn a_connection_goes_on_on_another_lane() {
    let (rig, lanes, _threads) = telling(Setup::default()).await;
    goes_along(&mut rig.connect().await, &lanes).await;
}

#[tokio::test]
async fn so_does_an_encrypted_one() {
    let (rig, lanes, _threads) = telling(Setup { tls: Some(tls("first")), ..Setup::default() }).await;
    goes_along(&mut encrypted(&rig, b"http/1.1").await, &lanes).await;
}

#[tokio::test]
async fn a_request_ends_on_the_lane_where_it_began() {
    let (begun, mut is_begun) = tokio::sync::mpsc::unbounded_channel();
    let goes_on = Arc::new(Notify::new());
    let held = Arc::clone(&goes_on);
    let answers = move || {
        let (begun, held) = (begun.clone(), Arc::clone(&held));
        async move {
            begun.send(lane_here()).unwrap();
            held.notified().await;
            Bytes::from(lane_here())
        }
    };
    let (rig, lanes, _threads) = on_two_lanes(Setup::default(), answers).await;
    let mut client = rig.connect().await;
    for _ in 0..10 {
        lanes.dismiss_one(0, 1);
        lanes.dismiss_one(1, 0);
        let begins = async {
            let lane = is_begun.recv().await.unwrap();
            goes_on.notify_one();
            lane
        };
        let (ended, begun) = tokio::join!(ask(&mut client), begins);
        assert_eq!(ended, begun);
    }
}

#[tokio::test]
async fn a_connection_that_never_asked_anything_stays() {
    let (rig, lanes, _threads) = telling(Setup::default()).await;
    lanes.dismiss_one(0, 1);
    let mut client = rig.connect().await;
    until(|| lanes.connections(0) + lanes.connections(1) == 1).await;
    // It had a turn before this has one.
    lanes.runtime(0).spawn(async {}).await.unwrap();
    assert_eq!(ask(&mut client).await, "hapax-lane-0");
    ask_until(&mut client, "hapax-lane-1").await;
}

#[tokio::test]
async fn what_is_being_sent_is_sent_from_the_other_lane() {
    let (rig, lanes, _threads) =
        on_two_lanes(Setup::default(), || async { Bytes::from(vec![b'b'; LONG]) }).await;
    let mut client = rig.connect().await;
    lanes.dismiss_one(0, 1);
    client.write_all(GET).await.unwrap();
    // It has been handed to the connection as a whole, which waits until the client takes more of it.
    is_on(&lanes, 1).await;
    let _stopped = Stopped::lane(&lanes, 0).await;
    read_until(&mut client, b"\r\n\r\n").await;
    let mut body = vec![0; LONG];
    client.read_exact(&mut body).await.unwrap();
    assert!(body.iter().all(|byte| *byte == b'b'));
}

#[tokio::test]
async fn a_connection_that_left_is_closed_when_it_is_not_used() {
    let mut setup = Setup::default();
    setup.transport.keep_alive = Span(Duration::from_millis(200));
    let (rig, lanes, _threads) = telling(setup).await;
    let mut client = rig.connect().await;
    lanes.dismiss_one(0, 1);
    ask_until(&mut client, "hapax-lane-1").await;
    let _stopped = Stopped::lane(&lanes, 0).await;
    let end = timeout(LONG_ENOUGH, client.read(&mut [0])).await;
    assert_eq!(end.expect("the other lane watches the time").unwrap(), 0);
}

#[tokio::test]
async fn another_protocol_is_spoken_on_the_lane_that_it_came_to() {
    let origin = Origin::start(|mut peer| async move {
        loop {
            let (head, _) = peer.request().await?;
            if !head.to_ascii_lowercase().contains("\r\nupgrade: ") {
                peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
                continue;
            }
            peer.write("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").await?;
            while let Some(bytes) = peer.read().await {
                peer.write(bytes).await?;
            }
        }
    })
    .await;
    let threads = LaneThreads::start_some(2).unwrap();
    let lanes = threads.lanes();
    let rig = Rig::start(&[origin.url()], Setup { lanes: Some(lanes.clone()), ..Setup::default() }).await;
    let mut client = rig.connect().await;
    lanes.dismiss_one(0, 1);
    client.write_all(GET).await.unwrap();
    read_until(&mut client, b"\r\n\r\nok").await;
    is_on(&lanes, 1).await;
    let _stopped = Stopped::lane(&lanes, 0).await;
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        .await
        .unwrap();
    let head = read_until(&mut client, b"\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    for word in ["one", "another"] {
        client.write_all(word.as_bytes()).await.unwrap();
        read_until(&mut client, word.as_bytes()).await;
    }
}

#[tokio::test]
async fn a_connection_that_left_ends_well() {
    let (rig, lanes, _threads) = telling(Setup::default()).await;
    let mut client = rig.connect().await;
    lanes.dismiss_one(0, 1);
    ask_until(&mut client, "hapax-lane-1").await;
    rig.stop.cancel();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    rig.served.await.unwrap();
}

#[tokio::test]
async fn http2_stays_where_it_is() {
    let (rig, lanes, _threads) = telling(Setup::default()).await;
    let mut sender = http2_on(rig.connect().await).await;
    lanes.dismiss_one(0, 1);
    for _ in 0..4 {
        let request = Request::get("http://shop/").body(Full::default()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        response.into_body().collect().await.unwrap();
    }
    // Its streams may be anywhere, until they end.
    until(|| lanes.connections(0) + lanes.connections(1) == 1).await;
    assert_eq!(lanes.connections(0), 1);
}
