//! [`Fingerprint`]: the digest of what makes two requests the same.
//!
//! It knows parts with names; which parts a request has is for its surface to say.

mod canonical;
mod direct;
mod select;

use std::fmt;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::length::Length;
pub use select::Select;

/// A versioned digest of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    algorithm: u8,
    digest: [u8; 32],
}

/// The algorithm that makes fingerprints now; stored with each, so that a later one never compares them wrongly.
const ALGORITHM: u8 = 1;

impl Fingerprint {
    /// The fingerprint of a request of which nothing counts but its key: every use of the key matches.
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
        (self.algorithm == other.algorithm).then(|| words(&self.digest).ct_eq(&words(&other.digest)).into())
    }
}

/// Fewer and larger pieces are compared sooner.
fn words(digest: &[u8; 32]) -> [u64; 4] {
    let (words, _) = digest.as_chunks();
    std::array::from_fn(|at| u64::from_ne_bytes(words[at]))
}

/// Collects what counts, part by part. Names, kinds and lengths are hashed too, so parts never run together.
#[derive(Clone)]
#[must_use]
pub struct FingerprintBuilder {
    hash: Sha256,
}

/// The first part of every fingerprint.
const VERSION_1: &[u8] = b"hapax fingerprint 1";

/// How a part's bytes were made; hashed with them, so that raw bytes never pass for canonical ones.
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

    /// Adds bytes as they are. Order counts.
    pub fn part(mut self, name: &str, bytes: &[u8]) -> Self {
        self.add(name, Kind::Raw, bytes);
        self
    }

    /// Adds a JSON text of which neither the order of members nor whitespace nor the spelling of strings counts.
    ///
    /// Numbers count as written: `1` and `1.0` differ, and so do integers beyond a float's precision. A text that
    /// is no JSON, repeats a name in one object, has half a surrogate pair or nests deeper than
    /// [`JSON_DEPTH_MAX`](crate::JSON_DEPTH_MAX) is taken byte by byte (F-05).
    pub fn json(mut self, name: &str, bytes: &[u8]) -> Self {
        let mut text = Vec::with_capacity(bytes.len());
        match direct::append(&mut text, bytes) {
            Some(()) => self.add(name, Kind::Json, &text),
            None => self.add(name, Kind::Raw, bytes),
        }
        self
    }

    /// The same of those values that `select` names (F-06).
    ///
    /// A text that [`json`](Self::json) takes byte by byte is taken so here too, whatever is selected. Included
    /// values never pass for a whole document.
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

    /// The length first, so that no two lists of parts hash alike.
    fn add_sized(&mut self, bytes: &[u8]) {
        self.hash.update(Length::of(bytes).as_bytes());
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
