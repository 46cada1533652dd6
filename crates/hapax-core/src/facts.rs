//! [`FactStore`]: a quick place for finished records, in front of the store that decides.
//!
//! It is not a store: it claims nothing, decides nothing and may forget everything at any time. What it says about a
//! record is true, for it is told only what a store holds for good. What it does not know means nothing.

use std::fmt;
use std::time::Duration;

use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::key::RecordId;
use crate::record::Recorded;
use crate::store::BoxFuture;

/// A record that is finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fact {
    /// What was asked for.
    pub fingerprint: Fingerprint,
    /// What came of it.
    pub recorded: Recorded,
    /// How much longer the store that decides answers with it, at least.
    pub remaining: Duration,
}

/// Knows finished records. See the [module](self).
pub trait FactStore: fmt::Debug + Send + Sync + 'static {
    /// What is known of a record. `None` is no evidence of anything.
    fn find<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Option<Fact>, StoreError>>;

    /// Remembers a fact for as long as it remains, unless the record is withheld. A fact that is there stays: it does
    /// not live longer because somebody tells it again.
    fn keep<'a>(&'a self, id: &'a RecordId, fact: &'a Fact) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets a record that is about to be deleted, and does not take it again from anybody who read it before: the
    /// implementation says for how long.
    fn withhold<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Whether it answers.
    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}
