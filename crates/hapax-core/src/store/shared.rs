//! A store behind an [`Arc`] is a store.

use std::sync::Arc;

use super::{
    BoxFuture, Caching, Claim, ClaimRequest, Deleted, Fenced, Fingerprint, Health, Lease, Lookup, Nonce,
    Page, Query, Reason, RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError, Swept,
};

impl<S: Store + ?Sized> Store for Arc<S> {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        (**self).claim(ask)
    }

    fn recall(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Recorded> {
        (**self).recall(id, fingerprint)
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        (**self).renew(lease)
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        recorded: &'a Recorded,
        retention: std::time::Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        (**self).complete(lease, recorded, retention)
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        (**self).release(lease, answered)
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        (**self).abandon(lease, reason)
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        (**self).settle(id, settlement)
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        (**self).get(id)
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        (**self).list(query)
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        (**self).delete(id, nonce)
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        (**self).sweep(batch_max)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        (**self).stats()
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        (**self).health()
    }

    fn outcome_bytes_max(&self) -> usize {
        (**self).outcome_bytes_max()
    }

    fn caching(&self) -> Caching {
        (**self).caching()
    }

    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        (**self).watch(id)
    }
}
