//! What a client says first: which version of HTTP it speaks, and its first head.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::proxy::frames::PREFACE;
use crate::proxy::head::end_of_head;

/// The version, and what was read to find it out.
#[derive(Debug)]
pub(super) enum Sniffed {
    Http1(Bytes),
    Http2(Bytes),
}

/// Reads until it is certain which version is spoken.
pub(super) async fn first_bytes(io: &mut (impl AsyncRead + Unpin), http2: bool) -> io::Result<Sniffed> {
    // No more than it takes: a connection that stays silent should hold no memory.
    let mut bytes = [0; PREFACE.len()];
    let mut read = 0;
    loop {
        let more = io.read(&mut bytes[read..]).await?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read += more;
        if !http2 || bytes[..read] != PREFACE[..read] {
            return Ok(Sniffed::Http1(Bytes::copy_from_slice(&bytes[..read])));
        }
        if read == PREFACE.len() {
            return Ok(Sniffed::Http2(Bytes::from_static(PREFACE)));
        }
    }
}

/// Room for most heads.
const HEAD_USUAL: usize = 512;

/// Reads on until the head that has `begun` is whole, or can be none any more; it is for others to judge. Whoever never
/// gets that far holds no more memory than was sent.
pub(super) async fn first_head(
    io: &mut (impl AsyncRead + Unpin),
    begun: Bytes,
    bytes_max: usize,
) -> io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(HEAD_USUAL);
    bytes.extend_from_slice(&begun);
    let mut seen = 0;
    while bytes.len() <= bytes_max && matches!(end_of_head(&bytes, seen), Ok(None)) {
        seen = bytes.len();
        if io.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests;
