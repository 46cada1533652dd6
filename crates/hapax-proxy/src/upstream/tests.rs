//! Proof that nothing was sent, and who is waited for.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A connection, and the listener's side of it.
async fn connected() -> (Box<Http1>, tokio::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let target = Target::all(&[address], &UpstreamOptions::default()).unwrap().remove(0);
    let (link, accepted) = tokio::join!(target.connect(Needs::Any), listener.accept());
    let Link::Http1(link) = link.unwrap() else { panic!("HTTP/1.1 is spoken without TLS") };
    (link, accepted.unwrap().0)
}

fn request() -> Box<Request<Outgoing>> {
    let request = Request::get("/").header("host", "a").header("x-mine", "1");
    Box::new(request.body(Outgoing::nothing()).unwrap())
}

const PATIENCE: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_closed_connection_hands_the_request_back() {
    let (mut link, mut upstream) = connected().await;
    upstream.shutdown().await.unwrap();
    while link.is_open() {
        tokio::task::yield_now().await;
    }
    let Err(Unanswered::HandedBack(unsent)) = link.send(request(), PATIENCE).await else {
        panic!("the request comes back")
    };
    assert_eq!(unsent.headers()["x-mine"], "1");
    drop(link);
    let mut got = Vec::new();
    upstream.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"");
}

#[tokio::test]
async fn x_10_a_request_that_was_sent_does_not_come_back() {
    let (mut link, mut upstream) = connected().await;
    let close = tokio::spawn(async move {
        let mut first = [0];
        upstream.read_exact(&mut first).await.unwrap();
        upstream.shutdown().await.unwrap();
        upstream
    });
    let answer = link.send(request(), PATIENCE).await;
    assert!(matches!(answer, Err(Unanswered::Lost(_))), "{answer:?}");
    drop(close.await.unwrap());
}

#[tokio::test]
async fn a_connection_that_hands_a_request_back_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let target = Target::all(&[uri], &UpstreamOptions::default()).unwrap().remove(0);
    let address = Arc::new(Address::new(target, &UpstreamOptions::default()));
    let (mut closed, mut upstream) = connected().await;
    upstream.shutdown().await.unwrap();
    while closed.is_open() {
        tokio::task::yield_now().await;
    }
    let Err(Unanswered::HandedBack(unsent)) =
        address.send_on(Link::Http1(closed), request(), &mut None).await
    else {
        panic!("the request comes back")
    };
    let way = address.way(Needs::Any).unwrap();
    let (sent, seen) = tokio::join!(address.send(unsent, Needs::Any, way), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 5];
        stream.read_exact(&mut head).await.unwrap();
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        head
    });
    assert_eq!(sent.unwrap().response.status(), 204);
    assert_eq!(seen, b"GET /");
}

#[tokio::test]
async fn whoever_has_room_first_is_sent_the_request() {
    for freed in [0, 1] {
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        let options = UpstreamOptions { connections_max: 1, ..UpstreamOptions::default() };
        for _ in 0..2 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let uri: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
            let target = Target::all(&[uri], &options).unwrap().remove(0);
            addresses.push(Arc::new(Address::new(target, &options)));
            listeners.push(listener);
        }
        let mut places: Vec<_> = addresses.iter().map(|address| address.room.place()).collect();
        let upstreams = Upstreams { addresses, next: AtomicUsize::new(0), connection_wait: PATIENCE };
        let mut sent = Box::pin(upstreams.send(request(), Needs::Any, None));
        assert!(futures_util::poll!(&mut sent).is_pending(), "neither has room");
        places[freed] = None;
        let (sent, ()) = tokio::join!(sent, async {
            let (mut stream, _) = listeners[freed].accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        });
        assert_eq!(sent.unwrap().response.status(), 204);
    }
}
