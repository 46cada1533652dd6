//! Which version of HTTP a client speaks, by its first bytes.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What an HTTP/2 connection begins with (RFC 9113, section 3.4). No request of HTTP/1 does.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

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
