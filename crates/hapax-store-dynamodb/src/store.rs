//! [`DynamoDbStore`]: every change is decided by [`transition`] and written by [`Change`].

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::transition::{self, Decision};
use hapax_core::{
    BoxFuture, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, Nonce, Page, Query, Reason,
    Record, RecordId, Recorded, Settled, Settlement, State, Stats, Status, Store, StoreError, Swept,
    Timestamp, Verdict,
};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::attempt_writes::Attempts;
use crate::change::{Basis, Change};
use crate::client::Client;
use crate::config::Options;
use crate::error::{CallFailure, Effect};
use crate::item::{StoredOutcome, StoredRecord, Unreadable};
use crate::{chunks, list, sweep, table};

/// The limit of a scope's names in bytes: an item holds them besides the outcome.
pub const SCOPE_BYTES_MAX: usize = 64 << 10;

/// The longest that a settlement or deletion observes a claim that its process has not seen before.
const OBSERVE_MAX: Duration = Duration::from_secs(60);

/// Keeps records in a DynamoDB table.
#[derive(Debug)]
pub struct DynamoDbStore {
    pub(crate) client: Arc<Client>,
    /// Where the next sweep continues.
    sweep_position: Mutex<Option<String>>,
    /// The writes of attempts that are still running.
    pub(crate) attempts: Attempts,
}

impl DynamoDbStore {
    /// Parses a URL; see [`Options::from_url`].
    ///
    /// # Errors
    /// As [`Options::from_url`].
    pub fn options(url: &str) -> Result<Options, StoreError> {
        Options::from_url(url)
    }

    /// Connects to the table that the URL names; see [`Options::from_url`].
    ///
    /// # Errors
    /// If the URL is malformed, or the table cannot be reached or cannot be a store. The source is an
    /// [`OpenError`](crate::OpenError) that says what to do.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(Options::from_url(url)?).await
    }

    pub(crate) async fn connect_with(options: Options) -> Result<Self, StoreError> {
        let client = Arc::new(Client::new(options));
        table::probe(&client, "open").await?;
        Ok(Self { client, sweep_position: Mutex::new(None), attempts: Attempts::default() })
    }

    pub(crate) fn check_size(&self, op: &'static str, outcome: &Recorded) -> Result<(), StoreError> {
        if outcome.len() > self.client.options.outcome_bytes_max {
            return Err(CallFailure::OutcomeTooLarge.error(op, Effect::Read));
        }
        Ok(())
    }

    /// A write that names its attempt and does not depend on whether its lease has lapsed.
    pub(crate) async fn fenced(
        &self,
        op: &'static str,
        lease: &Lease,
        decide: impl Fn(Option<&Record>, Timestamp) -> Decision<Fenced>,
    ) -> Result<Fenced, StoreError> {
        let change = Change::new(&self.client, op, &lease.id);
        let decide = |stored: Option<&StoredRecord>, now| decide(stored.map(|stored| &stored.record), now);
        Ok(change.make(change.known(lease.fence.nonce), decide).await?.0)
    }

    async fn try_claim(&self, ask: &ClaimRequest) -> Result<(Claim, Option<StoredRecord>), StoreError> {
        let change = Change::new(&self.client, "claim", &ask.key.id);
        change
            .make(Basis::Guess(None), |stored, now| match stored {
                Some(stored) if stored.record.fence.nonce != ask.nonce => {
                    transition::claim(Some(&self.client.observed_record(stored, now)), ask, now)
                }
                stored => transition::claim(stored.map(|stored| &stored.record), ask, now),
            })
            .await
    }

    /// When to decide again about a claim that this process has not observed for long enough: at once if it is no longer a
    /// claim, after the rest of its lease if it has lapsed by its own deadline; none if its owner is alive.
    async fn retry_after(&self, op: &'static str, id: &RecordId) -> Result<Option<Duration>, StoreError> {
        let Ok(Some(stored)) = self.client.read(op, id, self.client.deadline()).await? else {
            return Ok(Some(Duration::ZERO));
        };
        let now = self.client.time.now();
        let Status::InProgress { lease_until } = self.client.observed_record(&stored, now).status else {
            return Ok(Some(Duration::ZERO));
        };
        let left = lease_until.since(now);
        Ok((stored.record.is_lapsed(now) && left <= OBSERVE_MAX).then_some(left))
    }
}

/// The record with its outcome.
pub(crate) async fn whole(
    client: &Client,
    op: &'static str,
    stored: &StoredRecord,
) -> Result<Result<Record, Unreadable>, StoreError> {
    if stored.outcome == StoredOutcome::None {
        return Ok(Ok(stored.record.clone()));
    }
    Ok(match chunks::read(client, op, stored).await? {
        Some(bytes) => stored.with_outcome(&bytes),
        None => Err("a part of the record's outcome is missing".to_owned()),
    })
}

/// Reads one record.
pub(crate) async fn get(client: &Client, op: &'static str, id: &RecordId) -> Result<Lookup, StoreError> {
    let mut before = None;
    loop {
        let stored = match client.read(op, id, client.deadline()).await? {
            Ok(Some(stored)) => stored,
            Ok(None) => return Ok(Lookup::Absent),
            Err(why) => return Ok(Lookup::Unreadable { why }),
        };
        // Reading a claim starts its observation.
        client.observed_record(&stored, client.time.now());
        match whole(client, op, &stored).await? {
            Ok(record) => return Ok(Lookup::Found { record: Box::new(record), now: client.time.now() }),
            // It may have been replaced while its parts were read; then the next read returns another version.
            Err(_) if before != Some(stored.version) => before = Some(stored.version),
            Err(why) => return Ok(Lookup::Unreadable { why }),
        }
    }
}

impl Store for DynamoDbStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            let scope = &ask.key.scope;
            if scope.namespace().len() + scope.operation().len() > SCOPE_BYTES_MAX {
                return Err(CallFailure::ScopeTooLarge.error("claim", Effect::Read));
            }
            let mut before = None;
            loop {
                let (remaining, stored) = match self.try_claim(ask).await {
                    Ok((Claim::Replay { remaining, .. }, Some(stored))) => (remaining, stored),
                    Ok((claim, _)) => {
                        if let Claim::Acquired(lease) = &claim {
                            self.attempts.claimed(lease.fence.nonce);
                        }
                        return Ok(claim);
                    }
                    Err(error) if is_unreadable(&error) => return Ok(Claim::Unreadable),
                    Err(error) => return Err(error),
                };
                match whole(&self.client, "claim", &stored).await?.map(|record| record.recorded().cloned()) {
                    Ok(Some(recorded)) => return Ok(Claim::Replay { recorded, remaining }),
                    _ if before != Some(stored.version) => before = Some(stored.version),
                    _ => return Ok(Claim::Unreadable),
                }
            }
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.fenced("renew", lease, |record, now| transition::renew(record, lease, now)))
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            self.check_size("complete", done)?;
            if let Some(completed) = self.complete_with_collected(lease, done, retention).await {
                return completed;
            }
            let decide =
                |record: Option<&Record>, now| transition::complete(record, lease, done, retention, now);
            self.fenced("complete", lease, decide).await
        })
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            if let Some(answered) = answered {
                self.check_size("release", answered)?;
            }
            self.attempts.forget(lease.fence.nonce);
            self.fenced("release", lease, |record, now| transition::release(record, lease, answered, now))
                .await
        })
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.attempts.forget(lease.fence.nonce);
        Box::pin(
            self.fenced("abandon", lease, move |record, now| transition::abandon(record, lease, reason, now)),
        )
    }

    /// A claim that this process has not seen before, and whose lease has lapsed by its own deadline, is observed for one
    /// lease first, up to a minute.
    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        Box::pin(async move {
            if let Verdict::Applied { recorded, .. } = &settlement.verdict {
                self.check_size("settle", recorded)?;
            }
            let settle = async || {
                let decide = |stored: Option<&StoredRecord>, now| {
                    let record = stored.map(|stored| self.client.observed_record(stored, now));
                    transition::settle(record.as_ref(), settlement, now)
                };
                Change::new(&self.client, "settle", id).make(Basis::Unread, decide).await
            };
            let (settled, _) = settle().await?;
            if settled == Settled::NotUncertain(State::InProgress)
                && let Some(left) = self.retry_after("settle", id).await?
            {
                sleep(left).await;
                return Ok(settle().await?.0);
            }
            Ok(settled)
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(get(&self.client, "get", id))
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(list::list(&self.client, query))
    }

    /// A claim that this process has not seen before is observed as in [`settle`](Self::settle).
    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        Box::pin(async move {
            let delete = async || {
                let decide = |stored: Option<&StoredRecord>, now| {
                    let record = stored.map(|stored| self.client.observed_record(stored, now));
                    transition::delete(record.as_ref(), nonce, now)
                };
                Change::new(&self.client, "delete", id).make(Basis::Unread, decide).await
            };
            let (deleted, _) = delete().await?;
            if deleted == Deleted::InProgress
                && let Some(left) = self.retry_after("delete", id).await?
            {
                sleep(left).await;
                return Ok(delete().await?.0);
            }
            Ok(deleted)
        })
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(sweep::sweep(&self.client, &self.sweep_position, batch_max))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(list::stats(&self.client))
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(table::probe(&self.client, "health"))
    }

    fn outcome_bytes_max(&self) -> usize {
        self.client.options.outcome_bytes_max
    }
}

fn is_unreadable(error: &StoreError) -> bool {
    error.source().and_then(|cause| cause.downcast_ref()) == Some(&CallFailure::Unreadable)
}
