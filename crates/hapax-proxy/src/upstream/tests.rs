//! Requests that are handed back unsent, and requests that wait for a connection slot.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A connection, and the server's side of it.
async fn connected() -> (Box<Http1Connection>, tokio::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let target = Target::all(&[address], &UpstreamOptions::default()).unwrap().remove(0);
    let (connection, accepted) = tokio::join!(target.connect(RequiredVersion::Any), listener.accept());
    let UpstreamConnection::Http1(connection) = connection.unwrap() else {
        panic!("HTTP/1.1 is spoken without TLS")
    };
    (connection, accepted.unwrap().0)
}

fn request() -> Box<Request<OutgoingBody>> {
    let request = Request::get("/").header("host", "a").header("x-mine", "1");
    Box::new(request.body(OutgoingBody::empty()).unwrap())
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_closed_connection_hands_the_request_back() {
    let (mut connection, mut upstream) = connected().await;
    upstream.shutdown().await.unwrap();
    while connection.is_open() {
        tokio::task::yield_now().await;
    }
    let Err(ConnectionError::HandedBack(unsent)) = connection.send(request(), HOUR).await else {
        panic!("the request is handed back")
    };
    assert_eq!(unsent.headers()["x-mine"], "1");
    drop(connection);
    let mut got = Vec::new();
    upstream.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"");
}

#[tokio::test]
async fn x_10_a_sent_request_is_not_handed_back() {
    let (mut connection, mut upstream) = connected().await;
    let close = tokio::spawn(async move {
        let mut first = [0];
        upstream.read_exact(&mut first).await.unwrap();
        upstream.shutdown().await.unwrap();
        upstream
    });
    let response = connection.send(request(), HOUR).await;
    assert!(matches!(response, Err(ConnectionError::Lost(_))), "{response:?}");
    drop(close.await.unwrap());
}

#[tokio::test]
async fn a_connection_that_hands_a_request_back_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let target = Target::all(&[uri], &UpstreamOptions::default()).unwrap().remove(0);
    let address = Arc::new(UpstreamAddress::new(target, &UpstreamOptions::default()));
    let (mut closed, mut upstream) = connected().await;
    upstream.shutdown().await.unwrap();
    while closed.is_open() {
        tokio::task::yield_now().await;
    }
    let Err(ConnectionError::HandedBack(unsent)) =
        address.send_on(UpstreamConnection::Http1(closed), request(), &mut None).await
    else {
        panic!("the request is handed back")
    };
    let acquired = address.try_acquire(RequiredVersion::Any).unwrap();
    let (sent, seen) = tokio::join!(address.send(unsent, RequiredVersion::Any, acquired), async {
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
async fn a_waiting_request_goes_to_the_first_address_with_a_free_slot() {
    for freed in [0, 1] {
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        let options = UpstreamOptions { connections_max: 1, ..UpstreamOptions::default() };
        for _ in 0..2 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let uri: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
            let target = Target::all(&[uri], &options).unwrap().remove(0);
            addresses.push(Arc::new(UpstreamAddress::new(target, &options)));
            listeners.push(listener);
        }
        let mut slots: Vec<_> = addresses.iter().map(|address| address.slots.try_acquire()).collect();
        let pool = UpstreamPool { addresses, next: AtomicUsize::new(0), connection_wait: HOUR };
        let mut sent = Box::pin(pool.send(request(), RequiredVersion::Any, |_| {}));
        assert!(futures_util::poll!(&mut sent).is_pending(), "no address has a free slot");
        slots[freed] = None;
        let (sent, ()) = tokio::join!(sent, async {
            let (mut stream, _) = listeners[freed].accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        });
        assert_eq!(sent.unwrap().response.status(), 204);
    }
}
