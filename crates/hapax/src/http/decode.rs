//! Compressed request bodies, decoded within limits. What is decoded is hashed, never passed on.

use std::borrow::Cow;
use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::fingerprint::BodyRefused;

/// How far a body may unfold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DecodeLimits {
    /// The most bytes of a decoded body.
    pub(crate) bytes_max: usize,
    /// The most decoded bytes for each byte sent.
    pub(crate) ratio_max: usize,
}

impl Default for DecodeLimits {
    /// As much as a body may have when it comes plain, and ten times what text usually shrinks to: bombs start at a
    /// thousand.
    fn default() -> Self {
        Self { bytes_max: 2 << 20, ratio_max: 100 }
    }
}

/// The most codings on one body. One is usual, two are a mistake along the way, more are an attack.
const CODINGS_MAX: usize = 3;

#[derive(Clone, Copy)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
}

/// The body before these codings were applied to it, in the order they are named.
pub(crate) fn decoded<'a>(
    codings: &[Cow<'_, [u8]>],
    sent: &'a [u8],
    limits: &DecodeLimits,
) -> Result<Cow<'a, [u8]>, BodyRefused> {
    let codings: Option<Vec<_>> = codings.iter().map(|name| coding(name)).collect();
    let codings =
        codings.filter(|codings| codings.len() <= CODINGS_MAX).ok_or(BodyRefused::CodingUnsupported)?;
    let bytes_max = limits.bytes_max.min(sent.len().saturating_mul(limits.ratio_max));
    codings
        .iter()
        .rev()
        .try_fold(Cow::Borrowed(sent), |sent, coding| decoded_once(*coding, &sent, bytes_max).map(Cow::Owned))
}

fn coding(name: &[u8]) -> Option<Coding> {
    match name {
        b"gzip" => Some(Coding::Gzip),
        b"deflate" => Some(Coding::Deflate),
        b"br" => Some(Coding::Brotli),
        _ => None,
    }
}

fn decoded_once(coding: Coding, sent: &[u8], bytes_max: usize) -> Result<Vec<u8>, BodyRefused> {
    let (bytes, rest) = match coding {
        // This one reads on until nothing is left.
        Coding::Gzip => (read(&mut MultiGzDecoder::new(sent), bytes_max)?, &[][..]),
        Coding::Deflate if has_zlib_header(sent) => {
            let mut reader = ZlibDecoder::new(sent);
            (read(&mut reader, bytes_max)?, reader.into_inner())
        }
        Coding::Deflate => {
            let mut reader = DeflateDecoder::new(sent);
            (read(&mut reader, bytes_max)?, reader.into_inner())
        }
        Coding::Brotli if has_large_window(sent) => return Err(BodyRefused::Undecodable),
        Coding::Brotli => {
            let mut reader = Decompressor::new(sent, 4096);
            let bytes = read(&mut reader, bytes_max)?;
            // Asked again after the end, it fails if it has more in its buffer.
            reader.read(&mut [0]).map_err(|_| BodyRefused::Undecodable)?;
            (bytes, reader.into_inner())
        }
    };
    if rest.is_empty() { Ok(bytes) } else { Err(BodyRefused::Undecodable) }
}

/// Reads all, in memory that grows with what was read and stops at the limit.
fn read(reader: &mut impl Read, bytes_max: usize) -> Result<Vec<u8>, BodyRefused> {
    let mut bytes = Vec::new();
    // One more than allowed tells too large from just fitting, and lets the reader come to its checksum.
    let read = reader.take((bytes_max as u64).saturating_add(1)).read_to_end(&mut bytes);
    if bytes.len() > bytes_max {
        return Err(BodyRefused::TooLarge);
    }
    read.map_err(|_| BodyRefused::Undecodable)?;
    Ok(bytes)
}

/// `deflate` means zlib (RFC 9110, 8.4.1.2), but some senders leave its header out.
fn has_zlib_header(sent: &[u8]) -> bool {
    let header = |bytes: &[u8; 2]| bytes[0] & 0x0f == 8 && u16::from_be_bytes(*bytes).is_multiple_of(31);
    sent.first_chunk().is_some_and(header)
}

/// A window beyond RFC 7932's: the decoder would take it, and up to a gigabyte of memory with it.
fn has_large_window(sent: &[u8]) -> bool {
    sent.first().is_some_and(|first| first & 0x7f == 0x11)
}

#[cfg(test)]
mod tests;
