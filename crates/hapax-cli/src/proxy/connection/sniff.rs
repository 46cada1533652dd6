//! Which version of HTTP a client speaks, by its first bytes.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// What an HTTP/2 connection begins with (RFC 9113, section 3.4). No request of HTTP/1 does.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Enough for most heads, so that they are read at once.
const FIRST_READ: usize = 4096;

/// The version, and what was read to find it out.
#[derive(Debug)]
pub(super) enum Sniffed {
    Http1(Bytes),
    Http2(Bytes),
}

/// Reads until it is certain which version is spoken.
pub(super) async fn first_bytes(io: &mut (impl AsyncRead + Unpin), http2: bool) -> io::Result<Sniffed> {
    let mut read = BytesMut::with_capacity(FIRST_READ);
    loop {
        if io.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let compared = read.len().min(PREFACE.len());
        if !http2 || read[..compared] != PREFACE[..compared] {
            return Ok(Sniffed::Http1(read.freeze()));
        }
        if read.len() >= PREFACE.len() {
            return Ok(Sniffed::Http2(read.freeze()));
        }
    }
}
