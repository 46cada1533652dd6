//! [`Fingerprint`]: the digest of what makes two requests the same.

use std::fmt;

/// A versioned digest of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    algorithm: u8,
    digest: [u8; 32],
}

impl Fingerprint {
    /// The fingerprint with these parts, as a store reads them back.
    pub const fn from_parts(algorithm: u8, digest: [u8; 32]) -> Self {
        Self { algorithm, digest }
    }

    /// By which algorithm the digest was made.
    pub const fn algorithm(&self) -> u8 {
        self.algorithm
    }

    /// The digest.
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Whether both are of the same request; `None` when they were made by different algorithms and cannot be
    /// compared.
    pub fn matches(&self, other: &Self) -> Option<bool> {
        use subtle::ConstantTimeEq;
        (self.algorithm == other.algorithm).then(|| self.digest.ct_eq(&other.digest).into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}:", self.algorithm)?;
        self.digest[..8].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}
