//! [`Scope`], in which a key is unique, and [`RecordId`], the name of a record: hashes of length-prefixed parts.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::Key;
use crate::length::LengthPrefix;
use crate::text::Text;

/// The namespace, principal and operation in which a key is unique.
///
/// The principal is hashed on entry, so a token passed as one is never stored.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scope {
    /// None when empty, the usual case: a shared empty `Arc` would have a contended reference count.
    namespace: Option<Arc<str>>,
    principal: Option<PrincipalHash>,
    operation: Text,
}

/// The hash of a principal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrincipalHash([u8; 16]);

impl Scope {
    /// The scope of `operation` (method and path, function name, consumer name), shared by all principals.
    pub fn new(operation: impl AsRef<str>) -> Self {
        Self::of_words([operation.as_ref()])
    }

    /// As [`new`](Self::new), with the operation as parts to concatenate: avoids an allocation per request.
    pub fn of_words<const N: usize>(operation: [&str; N]) -> Self {
        Self { namespace: None, principal: None, operation: Text::joined(operation) }
    }

    /// Sets the namespace, which separates deployments that share a store.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.namespace = Some(namespace.into()).filter(|namespace| !namespace.is_empty());
        self
    }

    /// Sets the principal (tenant, user, account).
    #[must_use]
    pub fn principal(mut self, principal: impl AsRef<[u8]>) -> Self {
        self.principal = Some(PrincipalHash(first(&digest([b"hapax principal 1", principal.as_ref()]))));
        self
    }

    /// The namespace; empty when none is set.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The operation.
    pub fn operation(&self) -> &str {
        self.operation.as_str()
    }

    /// The hash of the principal, when one is set.
    pub fn principal_hash(&self) -> Option<&PrincipalHash> {
        self.principal.as_ref()
    }

    /// Restores a scope from its stored parts.
    pub fn from_parts(namespace: &str, principal: Option<PrincipalHash>, operation: &str) -> Self {
        let namespace = (!namespace.is_empty()).then(|| namespace.into());
        Self { namespace, principal, operation: operation.into() }
    }
}

impl fmt::Display for Scope {
    /// `namespace/operation`; the operation alone without a namespace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(self.operation())
    }
}

impl From<&str> for Scope {
    fn from(operation: &str) -> Self {
        Self::new(operation)
    }
}

impl PrincipalHash {
    /// Restores a hash from its stored bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for PrincipalHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Hex(&self.0))
    }
}

/// The name of a record: 8 bytes of the key's own hash, then 24 bytes of the hash of scope and key.
///
/// The first part finds a key whose scope is unknown; the second separates scopes. The hash is unkeyed, so every process
/// derives the same id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId([u8; 32]);

impl RecordId {
    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if hex.len() != 2 * bytes.len() || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Hex(&self.0))
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The identity of a record: a scope, and the id of a key in it. It holds hashes only, never the key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ScopedKey {
    /// The scope.
    pub scope: Scope,
    /// The record's id.
    pub id: RecordId,
}

impl ScopedKey {
    /// Derives the id of `key` in `scope`.
    pub fn new(scope: Scope, key: &Key) -> Self {
        let principal = scope.principal.as_ref().map_or(&[][..], |principal| &principal.0);
        let digest = digest([
            b"hapax id 1",
            scope.namespace().as_bytes(),
            principal,
            scope.operation.as_bytes(),
            key.0.as_bytes(),
        ]);
        let mut id = [0; 32];
        id[..8].copy_from_slice(&key_hash(key));
        id[8..].copy_from_slice(&first::<24>(&digest));
        Self { scope, id: RecordId(id) }
    }
}

/// The key's own hash: the first part of its id in every scope.
pub fn key_hash(key: &Key) -> [u8; 8] {
    first(&digest([b"hapax key 1", key.0.as_bytes()]))
}

/// Hashes parts, each with a length prefix, so that no two lists of parts collide.
fn digest<const N: usize>(parts: [&[u8]; N]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(LengthPrefix::of(part).as_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

pub(super) fn first<const N: usize>(digest: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&digest[..N]);
    out
}

pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // In blocks: an id is formatted for every request that runs.
        for bytes in self.0.chunks(32) {
            let mut text = [0; 64];
            for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
                digits.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
            }
            f.write_str(std::str::from_utf8(&text[..2 * bytes.len()]).expect("digits are ASCII"))?;
        }
        Ok(())
    }
}
