use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const LIMITS: RequestLimits = RequestLimits { timeout: Duration::from_secs(60), body_bytes_max: 100 };
const POOL: PoolOptions = PoolOptions { idle_max: 4, idle_timeout: Duration::from_secs(3600) };

/// Counts connections and requests. Closes the connection instead of a response to the requests with these numbers.
struct TestServer {
    url: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl TestServer {
    async fn start(unanswered: &'static [usize]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/path", listener.local_addr().unwrap());
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (accepted, received) = (connections.clone(), requests.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(respond(stream, received.clone(), unanswered));
            }
        });
        Self { url, connections, requests }
    }

    /// How many connections and requests there were.
    fn counts(&self) -> (usize, usize) {
        (self.connections.load(Ordering::SeqCst), self.requests.load(Ordering::SeqCst))
    }

    fn request(&self, method: Method) -> Request<Full<Bytes>> {
        Request::builder().method(method).uri(&self.url).body(Full::default()).unwrap()
    }
}

async fn respond(mut stream: TcpStream, received: Arc<AtomicUsize>, unanswered: &[usize]) {
    let mut head = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        assert!(head.starts_with(b"GET /path HTTP/1.1\r\n") || head.starts_with(b"POST /path HTTP/1.1\r\n"));
        head.clear();
        if unanswered.contains(&(received.fetch_add(1, Ordering::SeqCst) + 1)) {
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes").await.unwrap();
    }
}

/// Sends a request, then runs the other tasks, so that its connection returns to the pool.
async fn send(client: &HttpClient, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, RequestError> {
    let response = client.send(request, LIMITS).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    response
}

#[tokio::test]
async fn sequential_requests_share_a_connection() {
    let server = TestServer::start(&[]).await;
    let client = HttpClient::new(POOL);
    for method in [Method::GET, Method::POST, Method::GET] {
        let response = send(&client, server.request(method)).await.unwrap();
        assert_eq!((response.status(), response.body().as_ref()), (StatusCode::OK, &b"yes"[..]));
    }
    assert_eq!(server.counts(), (1, 3));
}

#[tokio::test]
async fn only_a_safe_request_is_sent_again_when_a_pooled_connection_breaks() {
    for (method, is_answered, counts) in [(Method::GET, true, (2, 3)), (Method::POST, false, (1, 2))] {
        let server = TestServer::start(&[2]).await;
        let client = HttpClient::new(POOL);
        send(&client, server.request(Method::GET)).await.unwrap();
        let second = send(&client, server.request(method.clone())).await;
        assert_eq!(second.is_ok(), is_answered, "{method}");
        assert_eq!(server.counts(), counts, "{method}");
    }
}

#[tokio::test]
async fn no_request_is_sent_again_when_a_new_connection_breaks() {
    let server = TestServer::start(&[1]).await;
    let response = send(&HttpClient::new(POOL), server.request(Method::GET)).await;
    assert_eq!(response.unwrap_err(), RequestError::Response);
    assert_eq!(server.counts(), (1, 1));
}

#[tokio::test]
async fn connections_beyond_the_limits_of_the_pool_are_closed() {
    for pool in [PoolOptions { idle_max: 0, ..POOL }, PoolOptions { idle_timeout: Duration::ZERO, ..POOL }] {
        let server = TestServer::start(&[]).await;
        let client = HttpClient::new(pool);
        for _ in 0..2 {
            send(&client, server.request(Method::GET)).await.unwrap();
        }
        assert_eq!(server.counts(), (2, 2), "{pool:?}");
    }
}

#[tokio::test]
async fn a_response_has_limits_of_size_and_time() {
    let server = TestServer::start(&[]).await;
    let small = RequestLimits { body_bytes_max: 2, ..LIMITS };
    let too_large = HttpClient::new(POOL).send(server.request(Method::GET), small).await;
    assert_eq!(too_large.unwrap_err(), RequestError::Response);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let short = RequestLimits { timeout: Duration::from_millis(10), ..LIMITS };
    let request = Request::builder().uri(url).body(Full::default()).unwrap();
    assert_eq!(HttpClient::new(POOL).send(request, short).await.unwrap_err(), RequestError::Timeout);
}

#[tokio::test]
async fn a_url_without_a_server_is_refused() {
    for url in ["/path", "ftp://127.0.0.1/", "127.0.0.1:80"] {
        let request = Request::builder().uri(url).body(Full::default()).unwrap();
        assert_eq!(
            HttpClient::new(POOL).send(request, LIMITS).await.unwrap_err(),
            RequestError::Url,
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_closed_port_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let request = Request::builder().uri(url).body(Full::default()).unwrap();
    assert_eq!(HttpClient::new(POOL).send(request, LIMITS).await.unwrap_err(), RequestError::Connection);
}
