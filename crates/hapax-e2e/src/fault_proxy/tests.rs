use std::io::ErrorKind;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{FaultProxy, NetworkFault};

/// A client and its server, connected through a proxy.
struct Pair {
    proxy: FaultProxy,
    listener: TcpListener,
    client: TcpStream,
    server: TcpStream,
}

impl Pair {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = FaultProxy::start(listener.local_addr().unwrap()).await.unwrap();
        let (client, server) = connect(&proxy, &listener).await;
        Self { proxy, listener, client, server }
    }

    /// Whether both directions of a new connection work.
    async fn forwards(&self) -> bool {
        let (mut client, mut server) = connect(&self.proxy, &self.listener).await;
        arrives(&mut client, &mut server, b"question").await
            && arrives(&mut server, &mut client, b"answer").await
    }
}

async fn connect(proxy: &FaultProxy, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    (client, listener.accept().await.unwrap().0)
}

async fn arrives(from: &mut TcpStream, to: &mut TcpStream, sent: &[u8]) -> bool {
    let mut heard = vec![0; sent.len()];
    from.write_all(sent).await.is_ok() && to.read_exact(&mut heard).await.is_ok() && heard == sent
}

/// The remaining bytes, and how the stream ends.
async fn rest(stream: &mut TcpStream) -> (Vec<u8>, Option<ErrorKind>) {
    let mut heard = Vec::new();
    let ended = stream.read_to_end(&mut heard).await;
    (heard, ended.err().map(|error| error.kind()))
}

#[tokio::test]
async fn both_directions_and_their_ends_are_forwarded() {
    let mut pair = Pair::new().await;
    assert!(arrives(&mut pair.client, &mut pair.server, b"question").await);
    pair.client.shutdown().await.unwrap();
    assert_eq!(rest(&mut pair.server).await, (Vec::new(), None));
    assert!(arrives(&mut pair.server, &mut pair.client, b"answer").await, "only one direction is closed");
    drop(pair.server);
    assert_eq!(rest(&mut pair.client).await, (Vec::new(), None));
}

#[tokio::test]
async fn a_cut_closes_open_and_new_connections() {
    let mut pair = Pair::new().await;
    pair.proxy.strike(NetworkFault::Cut);
    assert_eq!(rest(&mut pair.client).await, (Vec::new(), None));
    assert_eq!(rest(&mut pair.server).await, (Vec::new(), None));
    let mut refused = TcpStream::connect(pair.proxy.address()).await.unwrap();
    assert_eq!(rest(&mut refused).await, (Vec::new(), None));
    pair.proxy.heal();
    assert!(pair.forwards().await);
}

#[tokio::test]
async fn a_reset_is_visible_to_both_sides() {
    let mut pair = Pair::new().await;
    pair.proxy.strike(NetworkFault::Reset);
    assert_eq!(rest(&mut pair.client).await.1, Some(ErrorKind::ConnectionReset));
    assert_eq!(rest(&mut pair.server).await.1, Some(ErrorKind::ConnectionReset));
    pair.proxy.heal();
    assert!(pair.forwards().await);
}

#[tokio::test]
async fn a_black_hole_forwards_nothing() {
    let mut pair = Pair::new().await;
    assert!(arrives(&mut pair.client, &mut pair.server, b"before").await);
    pair.proxy.strike(NetworkFault::BlackHole);
    pair.client.write_all(b"swallowed").await.unwrap();
    pair.server.write_all(b"swallowed").await.unwrap();
    let mut taken = TcpStream::connect(pair.proxy.address()).await.unwrap();
    taken.write_all(b"swallowed").await.unwrap();
    let (mut reached, _) = pair.listener.accept().await.unwrap();
    pair.proxy.heal();
    for stream in [&mut pair.client, &mut pair.server, &mut taken, &mut reached] {
        assert_eq!(rest(stream).await.0, b"", "held-back bytes are never forwarded");
    }
    assert!(pair.forwards().await);
}

#[tokio::test]
async fn a_delay_keeps_all_bytes() {
    let mut pair = Pair::new().await;
    let span = Duration::from_millis(30);
    pair.proxy.strike(NetworkFault::Delay(span));
    let sent = Instant::now();
    assert!(arrives(&mut pair.client, &mut pair.server, b"question").await);
    assert!(arrives(&mut pair.server, &mut pair.client, b"answer").await);
    assert!(sent.elapsed() >= span * 2, "it came too early");
}

#[tokio::test]
async fn a_half_closed_connection_still_forwards_the_clients_bytes() {
    let mut pair = Pair::new().await;
    pair.proxy.strike(NetworkFault::HalfClose);
    assert_eq!(rest(&mut pair.client).await, (Vec::new(), None));
    assert!(arrives(&mut pair.client, &mut pair.server, b"still there").await);
}

#[tokio::test]
async fn a_truncated_response_ends_after_so_many_bytes_of_each_connection() {
    let mut pair = Pair::new().await;
    assert!(arrives(&mut pair.server, &mut pair.client, b"whole").await);
    pair.proxy.strike(NetworkFault::Truncate(4));
    assert!(arrives(&mut pair.client, &mut pair.server, b"a whole question").await);
    pair.server.write_all(b"an answer").await.unwrap();
    assert_eq!(rest(&mut pair.client).await.0, b"an a");
    let (mut client, mut server) = connect(&pair.proxy, &pair.listener).await;
    server.write_all(b"on").await.unwrap();
    server.write_all(b"ce more").await.unwrap();
    assert_eq!(rest(&mut client).await.0, b"once");
}

#[tokio::test]
async fn dropping_the_proxy_closes_its_connections() {
    let Pair { proxy, mut client, listener: _listener, server: _server } = Pair::new().await;
    drop(proxy);
    assert_eq!(rest(&mut client).await.0, b"");
}
