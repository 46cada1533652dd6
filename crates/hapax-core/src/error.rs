//! [`StoreError`]: a failed store call, and whether its write may have been applied.

use std::error::Error;
use std::fmt;

/// The kind of failure: above all, whether the write may have been applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Not applied: the store could not be reached, or refused before doing anything. Retry later.
    Unavailable,
    /// **Unknown**: the write may or may not have been applied. Repeat the call with the same nonce.
    Unknown,
    /// Not applied: the store has no room. Free some, or wait for a sweep.
    Full,
    /// Not applied: the value exceeds the store's size limit.
    TooLarge,
    /// Not applied: the store stopped itself after a failure of unknown extent and must be reopened.
    Stopped,
    /// Not applied: the store holds data that this version cannot read, or is not the expected kind of store.
    Incompatible,
    /// Not applied: another process uses the store.
    InUse,
    /// Not applied: the request is invalid for this store, such as a cursor that it never issued.
    Invalid,
}

impl StoreErrorKind {
    /// The name used in metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Full => "full",
            Self::TooLarge => "too_large",
            Self::Stopped => "stopped",
            Self::Incompatible => "incompatible",
            Self::InUse => "in_use",
            Self::Invalid => "invalid",
        }
    }
}

/// A failed store call.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    op: &'static str,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// The call `op` failed with `kind`.
    pub fn new(kind: StoreErrorKind, op: &'static str) -> Self {
        Self { kind, op, source: None }
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The call that failed.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// Whether the write may have been applied despite the error.
    pub fn is_unknown(&self) -> bool {
        self.kind == StoreErrorKind::Unknown
    }

    /// Whether a retry of the same call may succeed without intervention.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Unknown | StoreErrorKind::Full)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self.kind {
            StoreErrorKind::Unavailable => "the store is unavailable",
            StoreErrorKind::Unknown => "the store's answer was lost, the write may have been applied",
            StoreErrorKind::Full => "the store is full",
            StoreErrorKind::TooLarge => "the value is too large for the store",
            StoreErrorKind::Stopped => "the store stopped after a failure and must be reopened",
            StoreErrorKind::Incompatible => "the store's data cannot be read by this version",
            StoreErrorKind::InUse => "the store is in use",
            StoreErrorKind::Invalid => "the request is invalid for this store",
        };
        write!(f, "{}: {message}", self.op)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
