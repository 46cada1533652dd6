//! Upgrade requests: what follows one is HTTP, another protocol or refused, by its own response.

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
const MESSAGE: &str = "no request";

struct Connection {
    client: DuplexStream,
    io: ClientIo<DuplexStream>,
    state: Arc<ConnectionState>,
}

impl Connection {
    fn new() -> Self {
        let (client, server) = duplex(4096);
        let state = Arc::<ConnectionState>::default();
        let hour = Duration::from_secs(3600);
        let timeouts = Timeouts { head: hour, keep_alive: hour, write_idle: hour };
        let tracker = RequestTracker::Http1(Http1Inspector::new(4096));
        let io = ClientIo::new(server, Bytes::new(), tracker, state.clone(), timeouts);
        Self { client, io, state }
    }

    /// Sends this, and returns what hyper reads.
    async fn read(&mut self, sent: &str) -> String {
        self.client.write_all(sent.as_bytes()).await.unwrap();
        let mut bytes = [0; 4096];
        let count = self.io.read(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }
}

#[tokio::test]
async fn refuses_bytes_before_the_response_to_an_upgrade_request() {
    for before in ["", GET] {
        let mut connection = Connection::new();
        if !before.is_empty() {
            assert_eq!(connection.read(before).await, before);
            connection.state.record_response(StatusCode::OK);
        }
        assert_eq!(connection.read(UPGRADE).await, UPGRADE);
        assert_eq!(connection.read(MESSAGE).await.as_bytes(), INVALID_BYTES, "{before:?}");
        assert!(connection.state.has_early_bytes(), "{before:?}");
    }
}

#[tokio::test]
async fn the_response_to_an_earlier_request_does_not_decide_an_upgrade() {
    let mut connection = Connection::new();
    let both = format!("{GET}{UPGRADE}");
    assert_eq!(connection.read(&both).await, both);
    connection.state.record_response(StatusCode::OK);
    assert_eq!(connection.read(MESSAGE).await.as_bytes(), INVALID_BYTES);
    assert!(connection.state.has_early_bytes());
}

#[tokio::test]
async fn the_response_decides_what_follows_an_upgrade_request() {
    for (status, is_upgraded) in [(StatusCode::SWITCHING_PROTOCOLS, true), (StatusCode::OK, false)] {
        let mut connection = Connection::new();
        let both = format!("{GET}{UPGRADE}");
        assert_eq!(connection.read(&both).await, both);
        connection.state.record_response(StatusCode::OK);
        connection.state.record_response(status);
        let sent = if is_upgraded { "\n\0" } else { GET };
        assert_eq!(connection.read(sent).await, sent, "{status}");
        let is_refused = connection.read("\n\0").await.as_bytes() == INVALID_BYTES;
        assert_eq!(is_refused, !is_upgraded, "{status}");
        assert!(!connection.state.has_early_bytes(), "{status}");
    }
}
