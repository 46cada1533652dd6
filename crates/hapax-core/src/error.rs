//! [`StoreError`]: what a store says when it cannot say what happened, or cannot do what was asked.

use std::error::Error;
use std::fmt;

/// Why a store call failed, and above all: whether it may have been applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Not applied: the store could not be reached or refused before doing anything. Try again later.
    Unavailable,
    /// **Unknown**: the write may or may not have been applied. Send the same call with the same nonce again.
    Unknown,
    /// Not applied: the store has no room. Free some, or wait for a sweep.
    Full,
    /// Not applied: this value is larger than the store takes.
    TooLarge,
    /// Not applied: the store stopped itself after a failure it cannot judge and must be opened again.
    Stopped,
    /// Not applied: the store holds data that this version does not read, or is not what was expected there.
    Incompatible,
    /// Not applied: somebody else is using the store.
    InUse,
    /// Not applied: the call makes no sense to this store, such as a cursor that it never gave.
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

    /// The same with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why it failed.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Which call failed.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// Whether the write may have been applied all the same.
    pub fn is_unknown(&self) -> bool {
        self.kind == StoreErrorKind::Unknown
    }

    /// Whether the same call may succeed later without anybody's doing.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Unknown | StoreErrorKind::Full)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            StoreErrorKind::Unavailable => "the store is unavailable",
            StoreErrorKind::Unknown => "the store's answer was lost, it may have been applied",
            StoreErrorKind::Full => "the store is full",
            StoreErrorKind::TooLarge => "the value is too large for the store",
            StoreErrorKind::Stopped => "the store stopped after a failure and must be opened again",
            StoreErrorKind::Incompatible => "the store's data cannot be read by this version",
            StoreErrorKind::InUse => "the store is in use",
            StoreErrorKind::Invalid => "the request makes no sense to the store",
        };
        write!(f, "{}: {what}", self.op)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
