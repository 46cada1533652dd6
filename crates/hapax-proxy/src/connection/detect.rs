//! Detects the version of HTTP by a connection's first bytes, and reads its first HTTP/1 head.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::head::end_of_head;
use crate::http2_frames::PREFACE;

/// The version, and the bytes that were read to detect it.
#[derive(Debug)]
pub(super) enum DetectedVersion {
    Http1(Bytes),
    Http2(Bytes),
}

/// Reads until the version is certain.
pub(super) async fn detect_version(
    io: &mut (impl AsyncRead + Unpin),
    http2: bool,
) -> io::Result<DetectedVersion> {
    // The smallest buffer that suffices: a silent connection should hold little memory.
    let mut bytes = [0; PREFACE.len()];
    let mut read = 0;
    loop {
        let more = io.read(&mut bytes[read..]).await?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read += more;
        if !http2 || bytes[..read] != PREFACE[..read] {
            return Ok(DetectedVersion::Http1(Bytes::copy_from_slice(&bytes[..read])));
        }
        if read == PREFACE.len() {
            return Ok(DetectedVersion::Http2(Bytes::from_static(PREFACE)));
        }
    }
}

/// The capacity that most heads need.
const HEAD_USUAL: usize = 512;

/// Reads until the head that begins with `begun` is complete or certainly invalid; the inspector validates it. A client
/// that never completes it holds no more memory than it sent.
pub(super) async fn read_first_head(
    io: &mut (impl AsyncRead + Unpin),
    begun: Bytes,
    bytes_max: usize,
) -> io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(HEAD_USUAL);
    bytes.extend_from_slice(&begun);
    let mut searched = 0;
    while bytes.len() <= bytes_max && matches!(end_of_head(&bytes, searched), Ok(None)) {
        searched = bytes.len();
        if io.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests;
