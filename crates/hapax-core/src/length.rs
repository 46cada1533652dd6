//! [`LengthPrefix`]: the length that is hashed before the bytes of a part.

/// An unsigned LEB128 number: seven bits a byte beginning with the lowest, every byte but the last with its highest bit
/// set. Most lengths take one byte.
pub(crate) struct LengthPrefix {
    bytes: [u8; Self::BYTES_MAX],
    used: usize,
}

impl LengthPrefix {
    const BYTES_MAX: usize = usize::BITS.div_ceil(7) as usize;

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

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_each_length_in_the_fewest_bytes() {
        for (length, expected) in [
            (0, &[0][..]),
            (1, &[1]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 1]),
        ] {
            assert_eq!(LengthPrefix::of(&vec![0; length]).as_bytes(), expected, "{length}");
        }
    }
}
