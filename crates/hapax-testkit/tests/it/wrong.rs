//! Stores with one defect each, made of a correct store and a way to misuse it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hapax_core::{
    BoxFuture, Caching, Claim, ClaimRequest, Deleted, Deletions, Fenced, Fingerprint, Health, Lease, Lookup,
    Nonce, OnLapse, Page, Query, Reason, Record, RecordId, Recorded, Settled, Settlement, State, Stats,
    Status, Store, StoreError, StoreErrorKind, Swept,
};

/// The defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// A completion by any attempt is applied.
    UnfencedComplete,
    /// A release by any attempt is applied.
    ReleaseByAnyone,
    /// A renewal by any attempt is applied.
    RenewByAnyone,
    /// An abandonment by any attempt is applied.
    AbandonByAnyone,
    /// A lost write is reported as applied.
    LostCalledApplied,
    /// A lease never lapses.
    LeaseNeverLapses,
    /// A lapsed claim is taken over without permission.
    LapseRerunsSilently,
    /// Takeovers are not limited.
    AttemptsUnlimited,
    /// Every attempt has number one.
    AttemptsNotCounted,
    /// A claim reads first and writes then.
    ClaimNotAtomic,
    /// A repeated claim is another attempt.
    ClaimNotRepeatable,
    /// A repeated completion is lost.
    CompleteNotRepeatable,
    /// The owner of a lapsed claim may no longer complete it.
    LateOwnerRefused,
    /// A completion is two writes.
    CompleteInTwoSteps,
    /// The outcome's last byte is dropped.
    OutcomeTruncated,
    /// The fingerprint of a recalled record is not compared.
    RecallsAnything,
    /// A finished record is replayed for ever.
    ExpiryIgnored,
    /// Retention is counted from the claim.
    RetentionFromClaim,
    /// Another fingerprint is a mismatch only on a finished record.
    MismatchAfterBusy,
    /// A settlement ignores the state.
    SettlesAnything,
    /// A settlement ignores the attempt.
    SettlesAnyAttempt,
    /// A claim in progress may be deleted.
    DeletesInProgress,
    /// A deletion is not counted.
    DeletesUncounted,
    /// A sweep removes uncertain records that are not due.
    SweepsTooMuch,
    /// A sweep ignores the batch limit.
    SweepUnlimited,
    /// The last record of a page is missing.
    ListDropsRecords,
    /// Lists use the stored state, without lapses.
    ListByWrittenState,
    /// Any cursor means the start.
    CursorIgnored,
    /// A lapsed claim is counted as in progress.
    StatsByWrittenState,
    /// A full store forgets a record.
    EvictsWhenFull,
    /// An outcome of the stated maximum size is refused.
    TakesLessThanItSays,
    /// An outcome above the stated maximum size is taken.
    TakesMoreThanItSays,
    /// An unreadable record counts as absent.
    UnreadableAsAbsent,
    /// An unreadable record is missing in lists.
    UnreadableNotListed,
}

/// `inner` with `defect`.
pub(crate) fn wrap(defect: Wrong, inner: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(WrongStore { defect, inner })
}

#[derive(Debug)]
struct WrongStore {
    defect: Wrong,
    inner: Arc<dyn Store>,
}

impl WrongStore {
    fn is(&self, defect: Wrong) -> bool {
        self.defect == defect
    }

    async fn found(&self, id: &RecordId) -> Option<(Record, State)> {
        match self.inner.get(id).await {
            Ok(Lookup::Found { record, now }) => {
                let state = record.state_at(now);
                Some((*record, state))
            }
            _ => None,
        }
    }

    /// The lease of the record's owner, for another attempt.
    async fn stolen_lease(&self, lease: &Lease) -> Lease {
        match self.found(&lease.id).await {
            Some((record, _)) => Lease { fence: record.fence, ..lease.clone() },
            None => lease.clone(),
        }
    }

    async fn lease_for(&self, defect: Wrong, lease: &Lease) -> Lease {
        if self.is(defect) { self.stolen_lease(lease).await } else { lease.clone() }
    }

    fn reported(&self, answer: Fenced) -> Fenced {
        if self.is(Wrong::LostCalledApplied) { Fenced::Applied } else { answer }
    }

    async fn remove(&self, record: &Record) -> Result<(), StoreError> {
        let lease = Lease { id: record.key.id, fence: record.fence, length: Duration::ZERO };
        self.inner.abandon(&lease, Reason::Declared).await?;
        self.inner.delete(&record.key.id, record.fence.nonce).await?;
        Ok(())
    }

    async fn claim_wrongly(&self, ask: &ClaimRequest) -> Result<Claim, StoreError> {
        let found = self.found(&ask.key.id).await;
        match (self.defect, &found) {
            (Wrong::LeaseNeverLapses, Some((record, State::Uncertain)))
                if matches!(record.status, Status::InProgress { .. }) =>
            {
                let lease = Lease { id: ask.key.id, fence: record.fence, length: ask.lease };
                self.inner.renew(&lease).await?;
            }
            (Wrong::LapseRerunsSilently, _) => {
                let ask = ClaimRequest { on_lapse: OnLapse::Rerun, ..ask.clone() };
                return self.inner.claim(&ask).await;
            }
            (Wrong::AttemptsUnlimited, _) => {
                return self.inner.claim(&ClaimRequest { attempts_max: u32::MAX, ..ask.clone() }).await;
            }
            (Wrong::ClaimNotAtomic, None) => {
                tokio::task::yield_now().await;
                if let Some((record, _)) = self.found(&ask.key.id).await {
                    self.remove(&record).await?;
                }
            }
            (Wrong::ClaimNotRepeatable, Some((record, State::InProgress)))
                if record.fence.nonce == ask.nonce =>
            {
                return Ok(Claim::Busy { lease_left: ask.lease });
            }
            (Wrong::ExpiryIgnored, Some((Record { status: Status::Pinned { recorded }, .. }, _))) => {
                return Ok(Claim::Replay { recorded: recorded.clone(), remaining: ask.lease });
            }
            (Wrong::MismatchAfterBusy, Some((_, State::InProgress))) => {
                return Ok(Claim::Busy { lease_left: ask.lease });
            }
            _ => {}
        }
        match self.inner.claim(ask).await {
            Ok(Claim::Acquired(mut lease)) if self.is(Wrong::AttemptsNotCounted) => {
                lease.fence.attempt = 1;
                Ok(Claim::Acquired(lease))
            }
            Ok(Claim::Unreadable) if self.is(Wrong::UnreadableAsAbsent) => {
                let fence = hapax_core::Fence { nonce: ask.nonce, attempt: 1 };
                Ok(Claim::Acquired(Lease { id: ask.key.id, fence, length: ask.lease }))
            }
            Err(error) if error.kind() == StoreErrorKind::Full && self.is(Wrong::EvictsWhenFull) => {
                let page = self.inner.list(&Query { limit: 1, ..Query::default() }).await?;
                for record in page.records {
                    self.remove(&record).await?;
                }
                self.inner.claim(ask).await
            }
            answer => answer,
        }
    }

    async fn complete_wrongly(
        &self,
        lease: &Lease,
        done: &Recorded,
        retention: Duration,
    ) -> Result<Fenced, StoreError> {
        let lease = &self.lease_for(Wrong::UnfencedComplete, lease).await;
        let found = self.found(&lease.id).await;
        match (self.defect, &found) {
            (Wrong::CompleteNotRepeatable, Some((_, State::Completed | State::Failed)))
            | (Wrong::LateOwnerRefused, Some((_, State::Uncertain))) => return Ok(Fenced::Lost),
            (Wrong::CompleteInTwoSteps, _) => {
                self.inner.abandon(lease, Reason::Declared).await?;
                tokio::task::yield_now().await;
            }
            (Wrong::OutcomeTruncated, _) => {
                let payload = done.payload.slice(..done.payload.len().saturating_sub(1));
                let mut done = done.clone();
                done.payload = payload;
                return self.inner.complete(lease, &done, retention).await;
            }
            (Wrong::RetentionFromClaim, Some((record, _))) => {
                let Lookup::Found { now, .. } = self.inner.get(&lease.id).await? else {
                    return Ok(Fenced::Lost);
                };
                let retention = retention.saturating_sub(now.since(record.created_at));
                return self.inner.complete(lease, done, retention).await;
            }
            _ => {}
        }
        Ok(self.reported(self.inner.complete(lease, done, retention).await?))
    }

    async fn settle_wrongly(&self, id: &RecordId, settlement: &Settlement) -> Result<Settled, StoreError> {
        let Some((record, state)) = self.found(id).await else {
            return self.inner.settle(id, settlement).await;
        };
        let lease = Lease { id: *id, fence: record.fence, length: Duration::ZERO };
        if self.is(Wrong::SettlesAnything) && state == State::InProgress {
            self.inner.abandon(&lease, Reason::Declared).await?;
        }
        if self.is(Wrong::SettlesAnyAttempt) && record.fence.nonce != settlement.nonce {
            let mut settlement = settlement.clone();
            settlement.attempt = record.fence.nonce;
            return self.inner.settle(id, &settlement).await;
        }
        self.inner.settle(id, settlement).await
    }

    async fn list_wrongly(&self, query: &Query) -> Result<Page, StoreError> {
        let mut query = query.clone();
        if self.is(Wrong::CursorIgnored) && query.cursor.as_ref().is_some_and(|cursor| cursor.len() < 20) {
            query.cursor = None;
        }
        let wanted = query.states.clone();
        if self.is(Wrong::ListByWrittenState) {
            query.states.clear();
        }
        let mut page = self.inner.list(&query).await?;
        match self.defect {
            Wrong::ListByWrittenState if !wanted.is_empty() => {
                page.records.retain(|record| wanted.contains(&record.state()));
            }
            Wrong::ListDropsRecords => {
                page.records.pop();
            }
            Wrong::UnreadableNotListed => page.unreadable.clear(),
            _ => {}
        }
        Ok(page)
    }
}

impl Store for WrongStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(self.claim_wrongly(ask))
    }

    fn recall(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Recorded> {
        let recalled = self.inner.recall(id, fingerprint);
        if !self.is(Wrong::RecallsAnything) {
            return recalled;
        }
        match self.inner.get(id).now_or_never()?.ok()? {
            Lookup::Found { record, .. } => record.recorded().cloned(),
            _ => None,
        }
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            let lease = self.lease_for(Wrong::RenewByAnyone, lease).await;
            self.inner.renew(&lease).await
        })
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.complete_wrongly(lease, done, retention))
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            let lease = self.lease_for(Wrong::ReleaseByAnyone, lease).await;
            self.inner.release(&lease, answered).await
        })
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            let lease = self.lease_for(Wrong::AbandonByAnyone, lease).await;
            self.inner.abandon(&lease, reason).await
        })
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        Box::pin(self.settle_wrongly(id, settlement))
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(async move {
            match self.inner.get(id).await? {
                Lookup::Unreadable { .. } if self.is(Wrong::UnreadableAsAbsent) => Ok(Lookup::Absent),
                lookup => Ok(lookup),
            }
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(self.list_wrongly(query))
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        Box::pin(async move {
            let deleted = self.inner.delete(id, nonce).await?;
            if let (Wrong::DeletesInProgress, Deleted::InProgress, Some((record, _))) =
                (self.defect, deleted, self.found(id).await)
            {
                self.remove(&record).await?;
                return Ok(Deleted::Applied);
            }
            Ok(deleted)
        })
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(async move {
            if self.is(Wrong::SweepsTooMuch) {
                let query = Query { states: vec![State::Uncertain], ..Query::default() };
                for record in self.inner.list(&query).await?.records {
                    self.remove(&record).await?;
                }
            }
            let batch_max = if self.is(Wrong::SweepUnlimited) { usize::MAX } else { batch_max };
            self.inner.sweep(batch_max).await
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(async move {
            let mut stats = self.inner.stats().await?;
            if self.is(Wrong::StatsByWrittenState) {
                stats.in_progress += std::mem::take(&mut stats.uncertain);
            }
            Ok(stats)
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        self.inner.health()
    }

    fn caching(&self) -> Caching {
        if self.is(Wrong::DeletesUncounted) {
            return Caching::Owned(Arc::new(Deletions::new()));
        }
        self.inner.caching()
    }

    fn outcome_bytes_max(&self) -> usize {
        match (self.defect, self.inner.outcome_bytes_max()) {
            (Wrong::TakesLessThanItSays, bytes) => bytes + 1,
            (Wrong::TakesMoreThanItSays, bytes) => bytes - 1,
            (_, bytes) => bytes,
        }
    }
}
