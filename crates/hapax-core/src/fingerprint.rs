//! [`Fingerprint`]: the digest by which two requests are compared.
//!
//! It hashes named parts; the surface (HTTP, functions) chooses the parts of a request.

mod canonical;
mod direct;
mod select;

use std::fmt;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::length::LengthPrefix;
pub use select::Select;

/// A versioned digest of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    algorithm: u8,
    digest: [u8; 32],
}

/// The current algorithm; stored with each fingerprint, so that digests of different algorithms are never compared.
const ALGORITHM: u8 = 1;

impl Fingerprint {
    /// The fingerprint without parts, for requests that are identified by their key alone: it matches every use.
    pub fn empty() -> Self {
        static EMPTY: LazyLock<Fingerprint> = LazyLock::new(|| Fingerprint::builder().build());
        *EMPTY
    }

    /// Starts a fingerprint with no parts.
    ///
    /// ```
    /// use hapax_core::Fingerprint;
    ///
    /// let of = |body: &[u8]| Fingerprint::builder().part("path", b"/orders").json("body", body).build();
    /// assert_eq!(of(br#"{"a": 1, "b": 2}"#), of(br#"{"b":2,"a":1}"#));
    /// assert_ne!(of(br#"{"a": 1}"#), of(br#"{"a": 1.0}"#));
    /// ```
    pub fn builder() -> FingerprintBuilder {
        FingerprintBuilder::new()
    }

    /// Restores a fingerprint from its stored parts.
    pub const fn from_parts(algorithm: u8, digest: [u8; 32]) -> Self {
        Self { algorithm, digest }
    }

    /// The algorithm of the digest.
    pub const fn algorithm(&self) -> u8 {
        self.algorithm
    }

    /// The digest.
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Whether both are of the same request; `None` when their algorithms differ and they cannot be compared.
    pub fn matches(&self, other: &Self) -> Option<bool> {
        use subtle::ConstantTimeEq;
        (self.algorithm == other.algorithm).then(|| words(&self.digest).ct_eq(&words(&other.digest)).into())
    }
}

/// The digest as words: the constant-time comparison is faster on fewer, larger items.
fn words(digest: &[u8; 32]) -> [u64; 4] {
    let (words, _) = digest.as_chunks();
    std::array::from_fn(|at| u64::from_ne_bytes(words[at]))
}

/// Hashes the parts of a request. Names, kinds and lengths are hashed too, so part boundaries are unambiguous.
#[derive(Clone)]
#[must_use]
pub struct FingerprintBuilder {
    hash: Sha256,
}

/// The first part of every fingerprint.
const VERSION_1: &[u8] = b"hapax fingerprint 1";

/// The encoding of a part; hashed with it, so that raw bytes never equal canonical ones.
#[derive(Clone, Copy)]
enum Kind {
    Raw = 0,
    Json = 1,
    JsonIncluded = 2,
}

impl FingerprintBuilder {
    fn new() -> Self {
        let mut builder = Self { hash: Sha256::new() };
        builder.add_sized(VERSION_1);
        builder
    }

    /// Adds bytes verbatim. The order of parts counts.
    pub fn part(mut self, name: &str, bytes: &[u8]) -> Self {
        self.add(name, Kind::Raw, bytes);
        self
    }

    /// Adds a JSON text in canonical form: the order of members, whitespace and string escapes do not count.
    ///
    /// Numbers count as written: `1` and `1.0` differ, and so do integers beyond a float's precision. A text that
    /// is not JSON, repeats a name in one object, has an unpaired surrogate or nests deeper than
    /// [`JSON_DEPTH_MAX`](crate::JSON_DEPTH_MAX) is hashed verbatim (F-05).
    pub fn json(mut self, name: &str, bytes: &[u8]) -> Self {
        let mut text = Vec::with_capacity(bytes.len());
        match direct::append(&mut text, bytes) {
            Some(()) => self.add(name, Kind::Json, &text),
            None => self.add(name, Kind::Raw, bytes),
        }
        self
    }

    /// As [`json`](Self::json), restricted to the values that `select` names (F-06).
    ///
    /// A text that [`json`](Self::json) hashes verbatim is hashed verbatim here too, whatever the selection. Included
    /// values never equal a whole document.
    pub fn json_selected(mut self, name: &str, bytes: &[u8], select: &Select) -> Self {
        if select.include.is_empty() && select.exclude.is_empty() {
            return self.json(name, bytes);
        }
        let Some(mut document) = canonical::read(bytes) else {
            self.add(name, Kind::Raw, bytes);
            return self;
        };
        let mut text = String::with_capacity(bytes.len());
        select.prune(&mut document);
        if select.include.is_empty() {
            canonical::print(&mut text, &document);
            self.add(name, Kind::Json, text.as_bytes());
        } else {
            select.print_included(&mut text, &mut document);
            self.add(name, Kind::JsonIncluded, text.as_bytes());
        }
        self
    }

    /// The fingerprint of the parts so far.
    pub fn build(self) -> Fingerprint {
        Fingerprint { algorithm: ALGORITHM, digest: self.hash.finalize().into() }
    }

    fn add(&mut self, name: &str, kind: Kind, bytes: &[u8]) {
        self.add_sized(name.as_bytes());
        self.hash.update([kind as u8]);
        self.add_sized(bytes);
    }

    /// Hashes the length first, so that part boundaries are unambiguous.
    fn add_sized(&mut self, bytes: &[u8]) {
        self.hash.update(LengthPrefix::of(bytes).as_bytes());
        self.hash.update(bytes);
    }
}

impl fmt::Debug for FingerprintBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintBuilder")
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}:", self.algorithm)?;
        self.digest[..8].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}
