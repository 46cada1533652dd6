//! Wishes for another protocol: what follows one is HTTP, something else or refused, as its own answer says.

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const WISH: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
const MESSAGE: &str = "no request";

struct Connection {
    client: DuplexStream,
    guarded: Guarded<DuplexStream>,
    progress: Arc<Progress>,
}

impl Connection {
    fn new() -> Self {
        let (client, io) = duplex(4096);
        let progress = Arc::<Progress>::default();
        let hour = Duration::from_secs(3600);
        let times = Times { head: hour, keep_alive: hour, write_idle: hour };
        let watched = Watched::Http1(Inspector::new(4096));
        let guarded = Guarded::new(io, Bytes::new(), watched, progress.clone(), times);
        Self { client, guarded, progress }
    }

    /// What hyper reads of this.
    async fn read(&mut self, sent: &str) -> String {
        self.client.write_all(sent.as_bytes()).await.unwrap();
        let mut bytes = [0; 4096];
        let count = self.guarded.read(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }
}

#[tokio::test]
async fn bytes_before_the_answer_to_a_wish_are_refused_whatever_was_answered_before() {
    for before in ["", GET] {
        let mut connection = Connection::new();
        if !before.is_empty() {
            assert_eq!(connection.read(before).await, before);
            connection.progress.answered(StatusCode::OK);
        }
        assert_eq!(connection.read(WISH).await, WISH);
        assert_eq!(connection.read(MESSAGE).await.as_bytes(), SPOILED, "{before:?}");
        assert!(connection.progress.is_early(), "{before:?}");
    }
}

#[tokio::test]
async fn the_answer_to_an_earlier_request_says_nothing_about_a_wish() {
    let mut connection = Connection::new();
    let both = format!("{GET}{WISH}");
    assert_eq!(connection.read(&both).await, both);
    connection.progress.answered(StatusCode::OK);
    assert_eq!(connection.read(MESSAGE).await.as_bytes(), SPOILED);
    assert!(connection.progress.is_early());
}

#[tokio::test]
async fn what_follows_an_answered_wish_is_what_the_answer_says() {
    for (answer, is_other) in [(StatusCode::SWITCHING_PROTOCOLS, true), (StatusCode::OK, false)] {
        let mut connection = Connection::new();
        let both = format!("{GET}{WISH}");
        assert_eq!(connection.read(&both).await, both);
        connection.progress.answered(StatusCode::OK);
        connection.progress.answered(answer);
        let sent = if is_other { "\n\0" } else { GET };
        assert_eq!(connection.read(sent).await, sent, "{answer}");
        let is_refused = connection.read("\n\0").await.as_bytes() == SPOILED;
        assert_eq!(is_refused, !is_other, "{answer}");
        assert!(!connection.progress.is_early(), "{answer}");
    }
}
