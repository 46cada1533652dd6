use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const BOUNDS: Bounds = Bounds { within: Duration::from_secs(60), bytes_max: 100 };
const KEEP: Keep = Keep { unused_max: 4, span: Duration::from_secs(3600) };

/// Counts connections and requests, and hangs up without an answer on the requests of these numbers.
struct Peering {
    url: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Peering {
    async fn start(unanswered: &'static [usize]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/asked", listener.local_addr().unwrap());
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (opened, asked) = (connections.clone(), requests.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(answer(stream, asked.clone(), unanswered));
            }
        });
        Self { url, connections, requests }
    }

    fn counts(&self) -> (usize, usize) {
        (self.connections.load(Ordering::SeqCst), self.requests.load(Ordering::SeqCst))
    }

    fn request(&self, method: Method) -> Request<Full<Bytes>> {
        Request::builder().method(method).uri(&self.url).body(Full::default()).unwrap()
    }
}

async fn answer(mut stream: TcpStream, asked: Arc<AtomicUsize>, unanswered: &[usize]) {
    let mut head = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        assert!(
            head.starts_with(b"GET /asked HTTP/1.1\r\n") || head.starts_with(b"POST /asked HTTP/1.1\r\n")
        );
        head.clear();
        if unanswered.contains(&(asked.fetch_add(1, Ordering::SeqCst) + 1)) {
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes").await.unwrap();
    }
}

#[tokio::test]
async fn one_connection_serves_one_request_after_the_other() {
    let peering = Peering::start(&[]).await;
    let exchanges = Exchanges::new(KEEP);
    for method in [Method::GET, Method::POST, Method::GET] {
        let answer = exchanges.send(peering.request(method), BOUNDS).await.unwrap();
        assert_eq!((answer.status(), answer.body().as_ref()), (StatusCode::OK, &b"yes"[..]));
    }
    assert_eq!(peering.counts(), (1, 3));
}

#[tokio::test]
async fn only_what_changes_nothing_is_asked_again_on_a_new_connection() {
    for (method, answered, counts) in [(Method::GET, true, (2, 3)), (Method::POST, false, (1, 2))] {
        let peering = Peering::start(&[2]).await;
        let exchanges = Exchanges::new(KEEP);
        exchanges.send(peering.request(Method::GET), BOUNDS).await.unwrap();
        let second = exchanges.send(peering.request(method.clone()), BOUNDS).await;
        assert_eq!(second.is_ok(), answered, "{method}");
        assert_eq!(peering.counts(), counts, "{method}");
    }
}

#[tokio::test]
async fn what_a_new_connection_does_not_answer_is_not_asked_again() {
    let peering = Peering::start(&[1]).await;
    let unanswered = Exchanges::new(KEEP).send(peering.request(Method::GET), BOUNDS).await;
    assert_eq!(unanswered.unwrap_err(), Unanswered::Answer);
    assert_eq!(peering.counts(), (1, 1));
}

#[tokio::test]
async fn connections_beyond_the_limits_are_not_kept() {
    for keep in [Keep { unused_max: 0, ..KEEP }, Keep { span: Duration::ZERO, ..KEEP }] {
        let peering = Peering::start(&[]).await;
        let exchanges = Exchanges::new(keep);
        for _ in 0..2 {
            exchanges.send(peering.request(Method::GET), BOUNDS).await.unwrap();
        }
        assert_eq!(peering.counts(), (2, 2), "{keep:?}");
    }
}

#[tokio::test]
async fn an_answer_has_bounds() {
    let peering = Peering::start(&[]).await;
    let large = Bounds { bytes_max: 2, ..BOUNDS };
    let refused = Exchanges::new(KEEP).send(peering.request(Method::GET), large).await;
    assert_eq!(refused.unwrap_err(), Unanswered::Answer);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let late = Bounds { within: Duration::from_millis(10), ..BOUNDS };
    let request = Request::builder().uri(url).body(Full::default()).unwrap();
    assert_eq!(Exchanges::new(KEEP).send(request, late).await.unwrap_err(), Unanswered::Time);
    let nowhere = Request::builder().uri("/path").body(Full::default()).unwrap();
    assert_eq!(Exchanges::new(KEEP).send(nowhere, BOUNDS).await.unwrap_err(), Unanswered::Url);
}
