//! Compressed request bodies, decoded within limits. The decoded bytes are hashed and never forwarded.

use std::borrow::Cow;
use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::fingerprint::BodyRefused;

/// Limits of decompression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeLimits {
    /// The maximum size of a decoded body.
    pub bytes_max: usize,
    /// The maximum number of decoded bytes per byte sent.
    pub ratio_max: usize,
}

impl Default for DecodeLimits {
    /// The default size of an uncompressed body, and ten times the usual compression ratio of text: decompression bombs
    /// start at a thousand.
    fn default() -> Self {
        Self { bytes_max: 2 << 20, ratio_max: 100 }
    }
}

/// The maximum number of codings of a body. One is usual, two are a misconfiguration, more are an attack.
const CODINGS_MAX: usize = 3;

#[derive(Clone, Copy)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
}

/// The body before these codings were applied to it, in the order in which they are listed.
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
        // The multi-member decoder reads to the end of the input.
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
            // A read after the end fails if input remains in the buffer.
            reader.read(&mut [0]).map_err(|_| BodyRefused::Undecodable)?;
            (bytes, reader.into_inner())
        }
    };
    if rest.is_empty() { Ok(bytes) } else { Err(BodyRefused::Undecodable) }
}

/// Reads to the end; the buffer grows with the data and stops at the limit.
fn read(reader: &mut impl Read, bytes_max: usize) -> Result<Vec<u8>, BodyRefused> {
    let mut bytes = Vec::new();
    // One byte more than allowed separates a body that is too large from one of exactly the limit, and lets the reader
    // verify its checksum.
    let read = reader.take((bytes_max as u64).saturating_add(1)).read_to_end(&mut bytes);
    if bytes.len() > bytes_max {
        return Err(BodyRefused::TooLarge);
    }
    read.map_err(|_| BodyRefused::Undecodable)?;
    Ok(bytes)
}

/// `deflate` means zlib (RFC 9110, 8.4.1.2), but some senders omit its header.
fn has_zlib_header(sent: &[u8]) -> bool {
    let header = |bytes: &[u8; 2]| bytes[0] & 0x0f == 8 && u16::from_be_bytes(*bytes).is_multiple_of(31);
    sent.first_chunk().is_some_and(header)
}

/// Whether the window is larger than RFC 7932 allows: the decoder would accept it and allocate up to a gigabyte.
fn has_large_window(sent: &[u8]) -> bool {
    sent.first().is_some_and(|first| first & 0x7f == 0x11)
}

#[cfg(test)]
mod tests;
