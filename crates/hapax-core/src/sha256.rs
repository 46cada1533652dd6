//! SHA-256 of what is all in one place already, as keys and most requests are: without the buffer of a digest that
//! takes its input piece by piece.

use sha2::block_api::compress256;

/// How many bytes are hashed at a time.
const BLOCK: usize = 64;

/// What a digest begins with, by FIPS 180-4.
const BEGINNING: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// How long a text is with its padding: a one, zeros, and its length as eight bytes at the end of a block.
pub(crate) const fn padded(length: usize) -> usize {
    (length + 1 + size_of::<u64>()).next_multiple_of(BLOCK)
}

/// A length as it is hashed before what it is the length of: seven bits a byte beginning with the lowest, every byte
/// but the last with its highest bit set. Most lengths are one byte, and a block holds few.
pub(crate) struct Length {
    bytes: [u8; Self::BYTES_MAX],
    used: usize,
}

impl Length {
    const BYTES_MAX: usize = usize::BITS.div_ceil(7) as usize;

    #[inline]
    pub(crate) fn of(part: &[u8]) -> Self {
        let mut length = Self { bytes: [0; Self::BYTES_MAX], used: 1 };
        let mut rest = part.len();
        while rest >= 0x80 {
            length.bytes[length.used - 1] = (rest & 0x7f) as u8 | 0x80;
            length.used += 1;
            rest >>= 7;
        }
        length.bytes[length.used - 1] = rest as u8;
        length
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

/// The digest of the first `length` bytes of `buffer`, which has room for their [padding](padded); all behind them is
/// zero.
pub(crate) fn in_place(buffer: &mut [u8], length: usize) -> [u8; 32] {
    let text = &mut buffer[..padded(length)];
    text[length] = 0x80;
    let end = text.len() - size_of::<u64>();
    text[end..].copy_from_slice(&(8 * length as u64).to_be_bytes());
    let (blocks, _) = text.as_chunks::<BLOCK>();
    let mut state = BEGINNING;
    compress256(&mut state, blocks);
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(size_of::<u32>()).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn a_text_of_any_length_has_the_digest_that_it_has() {
        for length in 0..4 * BLOCK {
            let text: Vec<u8> = (1..=u8::MAX).cycle().take(length).collect();
            let mut buffer = text.clone();
            buffer.resize(padded(length), 0);
            assert_eq!(in_place(&mut buffer, length)[..], Sha256::digest(&text)[..], "{length} bytes");
        }
    }

    #[test]
    fn a_length_is_as_short_as_it_can_be() {
        for (length, expected) in [
            (0, &[0][..]),
            (1, &[1]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 1]),
        ] {
            assert_eq!(Length::of(&vec![0; length]).as_bytes(), expected, "{length}");
        }
    }
}
