//! Writing what lies in parts, as the head and the body of a message do.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// How long parts may be together to be short. It is on the stack for every write.
const SHORT_MAX: usize = 2_048;

/// Writes parts one after the other, short ones in one piece: to put them together takes less time than the system
/// takes to pick them up.
pub(super) fn poll_write_parts(
    io: Pin<&mut impl AsyncWrite>,
    cx: &mut Context<'_>,
    parts: &[io::IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    if let [one] = parts {
        return io.poll_write(cx, one);
    }
    let mut piece = [0; SHORT_MAX];
    let mut length = 0;
    for part in parts {
        let Some(place) = piece.get_mut(length..length + part.len()) else {
            return io.poll_write_vectored(cx, parts);
        };
        place.copy_from_slice(part);
        length += part.len();
    }
    io.poll_write(cx, &piece[..length])
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use super::*;

    /// Takes at most so many bytes at a time, and tells in how many parts they came.
    struct Taker {
        most: usize,
        taken: Vec<u8>,
        parts: Vec<usize>,
    }

    impl AsyncWrite for Taker {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            parts: &[io::IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            let count = bytes.len().min(self.most);
            self.taken.extend_from_slice(&bytes[..count]);
            self.parts.push(parts.len());
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// How many bytes were said to be written of these parts, and what came of it.
    async fn written(parts: &[&[u8]], most: usize) -> (usize, Taker) {
        let mut taker = Taker { most, taken: Vec::new(), parts: Vec::new() };
        let parts: Vec<_> = parts.iter().map(|part| io::IoSlice::new(part)).collect();
        let count = poll_fn(|cx| poll_write_parts(pin!(&mut taker), cx, &parts)).await.unwrap();
        (count, taker)
    }

    #[tokio::test]
    async fn short_parts_are_written_in_one_piece() {
        let body = [b'b'; SHORT_MAX - 4];
        for (parts, whole) in [
            (&[&b"head"[..], b"body"][..], &b"headbody"[..]),
            (&[b"a", b"", b"bc"], b"abc"),
            (&[b"head", &body], &[b"head", &body[..]].concat()),
        ] {
            let (count, taker) = written(parts, usize::MAX).await;
            assert_eq!((count, &taker.taken[..], &taker.parts[..]), (whole.len(), whole, &[1][..]));
        }
    }

    #[tokio::test]
    async fn long_parts_are_not_copied() {
        let long = [b'b'; SHORT_MAX];
        let (count, taker) = written(&[b"head", &long], usize::MAX).await;
        assert_eq!((count, taker.taken.len(), &taker.parts[..]), (4 + long.len(), 4 + long.len(), &[2][..]));
        assert!(taker.taken.starts_with(b"headbbb"));
    }

    #[tokio::test]
    async fn what_is_not_taken_is_not_said_to_be() {
        let (count, taker) = written(&[b"head", b"body"], 6).await;
        assert_eq!((count, &taker.taken[..]), (6, &b"headbo"[..]));
    }

    #[tokio::test]
    async fn nothing_is_nothing() {
        let (count, _) = written(&[], usize::MAX).await;
        assert_eq!(count, 0);
    }
}
