use tokio::io::AsyncWriteExt as _;

use super::*;

/// What is handed on when a client sends these pieces and then waits; nothing where more is waited for.
async fn handed_on(pieces: &[&[u8]], bytes_max: usize) -> Option<Bytes> {
    let (mut client, mut server) = tokio::io::duplex(4096);
    let (begun, rest) = pieces.split_first().unwrap();
    let begun = Bytes::copy_from_slice(begun);
    let mut head = Box::pin(first_head(&mut server, begun, bytes_max));
    for piece in rest {
        assert!(futures_util::poll!(&mut head).is_pending(), "it waits for {piece:?}");
        client.write_all(piece).await.unwrap();
    }
    match futures_util::poll!(&mut head) {
        std::task::Poll::Ready(head) => Some(head.unwrap()),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn a_first_head_is_handed_on_when_it_is_whole() {
    let head = handed_on(&[b"GET / HT", b"TP/1.1\r\nHost: a\r", b"\n\r\nbody"], 1000).await;
    assert_eq!(head.unwrap(), "GET / HTTP/1.1\r\nHost: a\r\n\r\nbody");
    assert_eq!(handed_on(&[b"GET / HTTP/1.1\r\nHost: a\r\n"], 1000).await, None);
}

#[tokio::test]
async fn what_can_be_no_head_is_handed_on_at_once() {
    assert_eq!(handed_on(&[b"GET / HTTP/1.1\n"], 1000).await.unwrap(), "GET / HTTP/1.1\n");
    assert_eq!(handed_on(&[b"GET", b" /long"], 8).await.unwrap(), "GET /long");
    assert_eq!(handed_on(&[b"GET", b" /lon"], 8).await, None);
}

#[tokio::test]
async fn a_client_that_leaves_in_its_first_head_has_asked_for_nothing() {
    let (client, mut server) = tokio::io::duplex(64);
    drop(client);
    let left = first_head(&mut server, Bytes::from_static(b"GET /"), 1000).await;
    assert_eq!(left.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}
