//! [`Recording`]: a store that records every call and its answer.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::transition::{Answer, Command};
use hapax_core::{
    BoxFuture, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, Nonce, Page, Query, Reason,
    RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError, Swept,
};

use super::{History, Reply, Request};

/// The store of one process, with every call recorded in a [`History`].
///
/// Put it between the engine and a [`Faulty`](crate::Faulty): the history then holds what the process saw. Lists,
/// counts and health are passed on unrecorded.
#[derive(Clone, Debug)]
pub struct Recording {
    history: History,
    process: Arc<str>,
    inner: Arc<dyn Store>,
}

impl Recording {
    /// `inner` as `process` uses it.
    pub fn new(history: &History, process: &str, inner: Arc<dyn Store>) -> Self {
        Self { history: history.clone(), process: process.into(), inner }
    }

    /// Makes one call and records it. A future that is dropped, or panics, leaves its call unanswered.
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: impl FnOnce() -> Request + Send + 'a,
        apply: impl FnOnce(&'a dyn Store) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
        reply: impl FnOnce(&T) -> Reply + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let ticket = self.history.invoke(&self.process, request());
            let answer = apply(&*self.inner).await;
            self.history.answer(ticket, answer.as_ref().map(reply).map_err(StoreError::kind));
            answer
        })
    }

    fn fenced<'a>(
        &'a self,
        command: impl FnOnce() -> Command + Send + 'a,
        apply: impl FnOnce(&'a dyn Store) -> BoxFuture<'a, Result<Fenced, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.call(|| Request::Command(command()), apply, |fenced| Reply::Answer(Answer::Fenced(*fenced)))
    }
}

impl Store for Recording {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.call(
            || Request::Command(Command::Claim(ask.clone())),
            move |inner| inner.claim(ask),
            |claim| Reply::Answer(Answer::Claim(claim.clone())),
        )
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.fenced(|| Command::Renew(lease.clone()), move |inner| inner.renew(lease))
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.fenced(
            move || Command::Complete { lease: lease.clone(), done: done.clone(), retention },
            move |inner| inner.complete(lease, done, retention),
        )
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.fenced(
            move || Command::Release { lease: lease.clone(), answered: answered.cloned() },
            move |inner| inner.release(lease, answered),
        )
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.fenced(
            move || Command::Abandon { lease: lease.clone(), reason },
            move |inner| inner.abandon(lease, reason),
        )
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        self.call(
            || Request::Command(Command::Settle { id: *id, settlement: settlement.clone() }),
            move |inner| inner.settle(id, settlement),
            |settled| Reply::Answer(Answer::Settled(*settled)),
        )
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        self.call(|| Request::Get(*id), move |inner| inner.get(id), |lookup| Reply::Lookup(lookup.clone()))
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.inner.list(query)
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        self.call(
            move || Request::Command(Command::Delete { id: *id, nonce }),
            move |inner| inner.delete(id, nonce),
            |deleted| Reply::Answer(Answer::Deleted(*deleted)),
        )
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        self.call(|| Request::Sweep, move |inner| inner.sweep(batch_max), |_| Reply::Swept)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        self.inner.stats()
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        self.inner.health()
    }

    fn outcome_bytes_max(&self) -> usize {
        self.inner.outcome_bytes_max()
    }

    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        self.inner.watch(id)
    }
}
