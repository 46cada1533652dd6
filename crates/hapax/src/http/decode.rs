//! Compressed request bodies, decoded within limits.

use std::borrow::Cow;
use std::io::Read;

pub(crate) struct DecodeLimits {
    pub(crate) bytes_max: usize,
    pub(crate) ratio_max: usize,
}

pub(crate) fn decoded<'a>(
    codings: &[Cow<'_, [u8]>],
    sent: &'a [u8],
    limits: &DecodeLimits,
) -> Result<Cow<'a, [u8]>, std::io::Error> {
    if codings != [Cow::Borrowed(b"gzip".as_slice())] {
        return Err(std::io::ErrorKind::Unsupported.into());
    }
    let bytes_max = limits.bytes_max.min(sent.len().saturating_mul(limits.ratio_max));
    let mut plain = Vec::new();
    flate2::bufread::GzDecoder::new(sent).take(bytes_max as u64).read_to_end(&mut plain)?;
    Ok(Cow::Owned(plain))
}
