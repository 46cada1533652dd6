use tokio::io::AsyncWriteExt as _;

use super::*;

/// What is returned when a client sends these chunks and then waits; none while more is awaited.
async fn read_head(chunks: &[&[u8]], bytes_max: usize) -> Option<Bytes> {
    let (mut client, mut server) = tokio::io::duplex(4096);
    let (begun, rest) = chunks.split_first().unwrap();
    let begun = Bytes::copy_from_slice(begun);
    let mut head = Box::pin(read_first_head(&mut server, begun, bytes_max));
    for chunk in rest {
        assert!(futures_util::poll!(&mut head).is_pending(), "the head is incomplete before {chunk:?}");
        client.write_all(chunk).await.unwrap();
    }
    match futures_util::poll!(&mut head) {
        std::task::Poll::Ready(head) => Some(head.unwrap()),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn a_first_head_is_returned_when_it_is_complete() {
    let head = read_head(&[b"GET / HT", b"TP/1.1\r\nHost: a\r", b"\n\r\nbody"], 1000).await;
    assert_eq!(head.unwrap(), "GET / HTTP/1.1\r\nHost: a\r\n\r\nbody");
    assert_eq!(read_head(&[b"GET / HTTP/1.1\r\nHost: a\r\n"], 1000).await, None);
}

#[tokio::test]
async fn an_invalid_first_head_is_returned_immediately() {
    assert_eq!(read_head(&[b"GET / HTTP/1.1\n"], 1000).await.unwrap(), "GET / HTTP/1.1\n");
    assert_eq!(read_head(&[b"GET", b" /long"], 8).await.unwrap(), "GET /long");
    assert_eq!(read_head(&[b"GET", b" /lon"], 8).await, None);
}

#[tokio::test]
async fn a_disconnect_within_the_first_head_is_an_error() {
    let (client, mut server) = tokio::io::duplex(64);
    drop(client);
    let left = read_first_head(&mut server, Bytes::from_static(b"GET /"), 1000).await;
    assert_eq!(left.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}
