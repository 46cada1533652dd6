//! [`FactStore`]: an external cache of finished records, in front of the authoritative store.
//!
//! It is not a store: it claims nothing, decides nothing and may lose its content at any time. A hit is always true,
//! because only pinned records are written to it. A miss proves nothing.

use std::fmt;
use std::time::Duration;

use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::key::RecordId;
use crate::record::Recorded;
use crate::store::BoxFuture;

/// A finished record.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Fact {
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// The recorded outcome.
    pub recorded: Recorded,
    /// The remaining retention in the authoritative store, at least.
    pub remaining: Duration,
}

impl Fact {
    /// A finished record with this outcome.
    pub const fn new(fingerprint: Fingerprint, recorded: Recorded, remaining: Duration) -> Self {
        Self { fingerprint, recorded, remaining }
    }
}

/// A cache of finished records. See the [module](self).
pub trait FactStore: fmt::Debug + Send + Sync + 'static {
    /// Looks a record up. `None` proves nothing.
    fn find<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Option<Fact>, StoreError>>;

    /// Inserts a fact that expires after [`Fact::remaining`], unless the record is withheld. An existing fact stays, and
    /// inserting it again does not extend its expiry.
    fn keep<'a>(&'a self, id: &'a RecordId, fact: &'a Fact) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes a record that is about to be deleted and refuses inserts by callers that read it before. The
    /// implementation documents for how long.
    fn withhold<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Probes the cache: `Ok` when it answers.
    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}
