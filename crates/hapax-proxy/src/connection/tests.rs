//! Connections in use for longer than every timeout. The clock is virtual, so the timeouts are the default ones.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use futures_util::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1 as client_http1, http2 as client_http2};
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::fields::ReservedFields;
use crate::options::ListenerOptions;
use crate::refusals::EmptyResponses;
use crate::request_body::ClientBodyError;

/// Reads the body, waits for this long and responds with 201 and the body.
#[derive(Clone)]
struct Slow(Duration);

impl Service<Request<ClientBody>> for Slow {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        let span = self.0;
        Box::pin(async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            sleep(span).await;
            let mut response = Response::new(Full::new(body));
            *response.status_mut() = StatusCode::CREATED;
            Ok(response)
        })
    }
}

/// A connection without TLS.
struct Connected {
    client: DuplexStream,
    shutdown: CancellationToken,
    served: JoinHandle<()>,
}

impl Connected {
    fn to<S>(service: S) -> Self
    where
        S: Service<Request<ClientBody>, Response = Response<Full<Bytes>>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let (client, io) = duplex(64 * 1024);
        let settings = ListenerSettings {
            options: ListenerOptions::default(),
            certificate: None,
            reserved: ReservedFields::default(),
            responses: Arc::new(EmptyResponses),
        };
        let server = Arc::new(ConnectionServer::new(settings, service, Workers::current()));
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        let shutdown = CancellationToken::new();
        let state = Arc::new(ConnectionState::with_shutdown(shutdown.clone()));
        let served = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { server.serve_detected(io, state, peer, Security::Plain, shutdown).await }
        });
        Self { client, shutdown, served }
    }
}

async fn http2_client(service: Slow) -> client_http2::SendRequest<Full<Bytes>> {
    let io = TokioIo::new(Connected::to(service).client);
    let (sender, connection) = client_http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn post(body: &str) -> Request<Full<Bytes>> {
    Request::post("http://shop/orders").body(Full::from(body.to_owned())).unwrap()
}

/// Longer than every timeout of the listener.
fn longer_than_all() -> Duration {
    let ListenerOptions { first_byte, head, body_idle, keep_alive, write_idle, .. } =
        ListenerOptions::default();
    let longest = [first_byte, head, body_idle, keep_alive, write_idle].into_iter().max();
    longest.unwrap() + Duration::from_secs(1)
}

#[tokio::test(start_paused = true)]
async fn an_http2_request_may_take_longer_than_every_timeout() {
    for span in [ListenerOptions::default().head + Duration::from_secs(2), 3 * longer_than_all()] {
        let mut sender = http2_client(Slow(span)).await;
        let response = sender.send_request(post("order")).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "order");
    }
}

/// A connection in steady use is never closed.
#[tokio::test(start_paused = true)]
async fn slow_requests_on_one_http2_connection_all_get_a_response() {
    const AT_A_TIME: usize = 8;
    const EACH: usize = 50;
    let sender = http2_client(Slow(longer_than_all())).await;
    let callers = (0..AT_A_TIME).map(|caller| {
        let mut sender = sender.clone();
        async move {
            // The callers' requests overlap, so that heads come while other requests are served.
            sleep(Duration::from_secs(7 * caller as u64)).await;
            for number in 0..EACH {
                let body = format!("order {caller}-{number}");
                let response = sender.send_request(post(&body)).await.unwrap();
                assert_eq!(response.status(), StatusCode::CREATED);
                assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), body);
            }
        }
    });
    join_all(callers).await;
}

/// Idle time within the keep-alive timeout does not count against the next request.
#[tokio::test(start_paused = true)]
async fn an_http1_connection_may_be_idle_before_a_slow_request() {
    let keep_alive = ListenerOptions::default().keep_alive;
    let io = TokioIo::new(Connected::to(Slow(longer_than_all())).client);
    let (mut sender, connection) = client_http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    for number in 0..3 {
        let body = format!("order {number}");
        let mut request = post(&body);
        *request.uri_mut() = http::Uri::from_static("/orders");
        request.headers_mut().insert(HOST, HeaderValue::from_static("shop"));
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), body);
        sleep(keep_alive - Duration::from_secs(1)).await;
    }
}

/// Reads the body and sends the result; sends a signal before it waits for the body.
#[derive(Clone)]
struct Reading {
    is_forwarding: bool,
    begun: UnboundedSender<()>,
    read: UnboundedSender<Result<Bytes, ClientBodyError>>,
}

impl Service<Request<ClientBody>> for Reading {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        let (Self { is_forwarding, begun, read }, mut body) = (self.clone(), request.into_body());
        if is_forwarding {
            body.begin_forwarding();
        }
        Box::pin(async move {
            begun.send(()).unwrap();
            read.send(body.collect().await.map(|body| body.to_bytes())).unwrap();
            Ok(Response::new(Full::from("read")))
        })
    }
}

const HALF: &str = "POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Length: 8\r\n\r\nhalf";
/// The same over HTTP/2: the preface, settings, a head and a part of the body.
const HALF_HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
    \0\0\x06\x01\x04\0\0\0\x01\x83\x86\x84\x01\x01a\0\0\x04\0\0\0\0\0\x01half";

/// Nothing was executed, so the client may send it to another process.
#[tokio::test(start_paused = true)]
async fn x_13_an_unforwarded_body_fails_immediately_on_shutdown() {
    for (sent, is_http2) in [(HALF.as_bytes(), false), (HALF_HTTP2, true)] {
        let (begun, mut is_begun) = unbounded_channel();
        let (read, mut is_read) = unbounded_channel();
        let Connected { mut client, shutdown, served } =
            Connected::to(Reading { is_forwarding: false, begun, read });
        client.write_all(sent).await.unwrap();
        is_begun.recv().await.unwrap();
        let asked = Instant::now();
        shutdown.cancel();
        assert!(matches!(is_read.recv().await.unwrap(), Err(ClientBodyError::ShuttingDown)));
        assert_eq!(asked.elapsed(), Duration::ZERO, "by the virtual clock");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        served.await.unwrap();
        assert!(is_http2 || answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", answer.escape_ascii());
    }
}

/// A body of which the upstream has the beginning may still arrive, without long pauses.
#[tokio::test(start_paused = true)]
async fn a_forwarded_body_may_still_arrive_during_shutdown() {
    for pause in [SHUTDOWN_GRACE / 2, SHUTDOWN_GRACE * 2] {
        let (begun, mut is_begun) = unbounded_channel();
        let (read, mut is_read) = unbounded_channel();
        let Connected { mut client, shutdown, served } =
            Connected::to(Reading { is_forwarding: true, begun, read });
        client.write_all(HALF.as_bytes()).await.unwrap();
        is_begun.recv().await.unwrap();
        shutdown.cancel();
        for byte in [b"b", b"o", b"d", b"y"] {
            sleep(pause).await;
            let _closed = client.write_all(byte).await;
        }
        match is_read.recv().await.unwrap() {
            Ok(body) => assert!(body == "halfbody" && pause < SHUTDOWN_GRACE, "{body:?}"),
            Err(error) => {
                assert!(matches!(error, ClientBodyError::TooSlow) && pause > SHUTDOWN_GRACE, "{error:?}")
            }
        }
        served.await.unwrap();
    }
}

/// A client that replies to no ping never confirms the shutdown.
#[tokio::test(start_paused = true)]
async fn a_silent_http2_client_does_not_delay_the_shutdown() {
    let (begun, mut is_begun) = unbounded_channel();
    let (read, mut is_read) = unbounded_channel();
    let Connected { mut client, shutdown, served } =
        Connected::to(Reading { is_forwarding: false, begun, read });
    let whole = HALF_HTTP2.strip_suffix(b"\0\0\x04\0\0\0\0\0\x01half").unwrap();
    client.write_all(whole).await.unwrap();
    client.write_all(b"\0\0\x02\0\x01\0\0\0\x01ok").await.unwrap();
    is_begun.recv().await.unwrap();
    assert_eq!(is_read.recv().await.unwrap().unwrap(), "ok");
    shutdown.cancel();
    let asked = Instant::now();
    served.await.unwrap();
    assert!(asked.elapsed() <= 2 * SHUTDOWN_GRACE, "{:?} by the virtual clock", asked.elapsed());
}
