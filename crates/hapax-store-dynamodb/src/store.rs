//! [`DynamoDbStore`]: the store itself. Every change is [`transition`]'s decision, written by [`Change`].

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

use crate::change::{Basis, Change};
use crate::config::Options;
use crate::error::{Effect, Refusal};
use crate::item::{Held, Outcome, Unreadable};
use crate::link::Link;
use crate::{chunks, list, sweep, table};

/// The most bytes that the names in a scope may have together: what an item takes beside an outcome.
pub const SCOPE_BYTES_MAX: usize = 64 << 10;

/// The longest that a settlement or deletion watches a claim which its process has not seen before.
const WATCH_MAX: Duration = Duration::from_secs(60);

/// Records in a DynamoDB table.
#[derive(Debug)]
pub struct DynamoDbStore {
    pub(crate) link: Arc<Link>,
    /// Where the next sweep goes on.
    swept_to: Mutex<Option<String>>,
}

impl DynamoDbStore {
    /// Reads a URL; see [`Options::from_url`].
    ///
    /// # Errors
    /// As [`Options::from_url`].
    pub fn options(url: &str) -> Result<Options, StoreError> {
        Options::from_url(url)
    }

    /// Connects to the table that the URL names; see [`Options::from_url`].
    ///
    /// # Errors
    /// When the URL is none, the table cannot be reached or cannot be a store. The source is an
    /// [`OpenError`](crate::OpenError) that says what to do.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(Options::from_url(url)?).await
    }

    pub(crate) async fn connect_with(options: Options) -> Result<Self, StoreError> {
        let link = Arc::new(Link::new(options));
        table::look(&link, "open").await?;
        Ok(Self { link, swept_to: Mutex::new(None) })
    }

    pub(crate) fn check_size(&self, op: &'static str, outcome: &Recorded) -> Result<(), StoreError> {
        if outcome.len() > self.link.options.outcome_bytes_max {
            return Err(Refusal::OutcomeTooLarge.error(op, Effect::Read));
        }
        Ok(())
    }

    /// A write that names its attempt and does not depend on whether its lease has lapsed.
    async fn fenced(
        &self,
        op: &'static str,
        lease: &Lease,
        decide: impl Fn(Option<&Record>, Timestamp) -> Decision<Fenced>,
    ) -> Result<Fenced, StoreError> {
        let change = Change::new(&self.link, op, &lease.id);
        let decide = |held: Option<&Held>, now| decide(held.map(|held| &held.record), now);
        Ok(change.make(change.known(lease.fence.nonce), decide).await?.0)
    }

    async fn try_claim(&self, ask: &ClaimRequest) -> Result<(Claim, Option<Held>), StoreError> {
        let change = Change::new(&self.link, "claim", &ask.key.id);
        change
            .make(Basis::Guess(None), |held, now| match held {
                Some(held) if held.record.fence.nonce != ask.nonce => {
                    transition::claim(Some(&self.link.judged(held, now)), ask, now)
                }
                held => transition::claim(held.map(|held| &held.record), ask, now),
            })
            .await
    }

    /// After how long it is worth deciding again about a claim that this process may not judge yet: at once where it is no
    /// claim any more, after the rest of its lease where it has lapsed by its own word; none where it is at work.
    async fn again_after(&self, op: &'static str, id: &RecordId) -> Result<Option<Duration>, StoreError> {
        let Ok(Some(held)) = self.link.read(op, id, self.link.deadline()).await? else {
            return Ok(Some(Duration::ZERO));
        };
        let now = self.link.time.now();
        let Status::InProgress { lease_until } = self.link.judged(&held, now).status else {
            return Ok(Some(Duration::ZERO));
        };
        let left = lease_until.since(now);
        Ok((held.record.is_lapsed(now) && left <= WATCH_MAX).then_some(left))
    }
}

/// The record with its outcome.
pub(crate) async fn whole(
    link: &Link,
    op: &'static str,
    held: &Held,
) -> Result<Result<Record, Unreadable>, StoreError> {
    if held.outcome == Outcome::None {
        return Ok(Ok(held.record.clone()));
    }
    Ok(match chunks::read(link, op, held).await? {
        Some(bytes) => held.with_outcome(&bytes),
        None => Err("a part of the record's outcome is missing".to_owned()),
    })
}

/// Reads one record.
pub(crate) async fn get(link: &Link, op: &'static str, id: &RecordId) -> Result<Lookup, StoreError> {
    let mut before = None;
    loop {
        let held = match link.read(op, id, link.deadline()).await? {
            Ok(Some(held)) => held,
            Ok(None) => return Ok(Lookup::Absent),
            Err(why) => return Ok(Lookup::Unreadable { why }),
        };
        // Whoever looks at a claim begins to watch it.
        link.judged(&held, link.time.now());
        match whole(link, op, &held).await? {
            Ok(record) => return Ok(Lookup::Found { record: Box::new(record), now: link.time.now() }),
            // It may have been replaced while its parts were read; then another write tells of it.
            Err(_) if before != Some(held.version) => before = Some(held.version),
            Err(why) => return Ok(Lookup::Unreadable { why }),
        }
    }
}

impl Store for DynamoDbStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            let scope = &ask.key.scope;
            if scope.namespace().len() + scope.operation().len() > SCOPE_BYTES_MAX {
                return Err(Refusal::ScopeTooLarge.error("claim", Effect::Read));
            }
            let mut before = None;
            loop {
                let (remaining, held) = match self.try_claim(ask).await {
                    Ok((Claim::Replay { remaining, .. }, Some(held))) => (remaining, held),
                    Ok((claim, _)) => return Ok(claim),
                    Err(error) if is_unreadable(&error) => return Ok(Claim::Unreadable),
                    Err(error) => return Err(error),
                };
                match whole(&self.link, "claim", &held).await?.map(|record| record.recorded().cloned()) {
                    Ok(Some(recorded)) => return Ok(Claim::Replay { recorded, remaining }),
                    _ if before != Some(held.version) => before = Some(held.version),
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
            self.fenced("release", lease, |record, now| transition::release(record, lease, answered, now))
                .await
        })
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(
            self.fenced("abandon", lease, move |record, now| transition::abandon(record, lease, reason, now)),
        )
    }

    /// A claim that this process has not seen before, and whose lease has lapsed by its own word, is watched for one
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
                let decide = |held: Option<&Held>, now| {
                    let record = held.map(|held| self.link.judged(held, now));
                    transition::settle(record.as_ref(), settlement, now)
                };
                Change::new(&self.link, "settle", id).make(Basis::Nothing, decide).await
            };
            let (settled, _) = settle().await?;
            if settled == Settled::NotUncertain(State::InProgress)
                && let Some(left) = self.again_after("settle", id).await?
            {
                sleep(left).await;
                return Ok(settle().await?.0);
            }
            Ok(settled)
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(get(&self.link, "get", id))
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(list::list(&self.link, query))
    }

    /// A claim that this process has not seen before is watched as [`settle`](Self::settle) does.
    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        Box::pin(async move {
            let delete = async || {
                let decide = |held: Option<&Held>, now| {
                    let record = held.map(|held| self.link.judged(held, now));
                    transition::delete(record.as_ref(), nonce, now)
                };
                Change::new(&self.link, "delete", id).make(Basis::Nothing, decide).await
            };
            let (deleted, _) = delete().await?;
            if deleted == Deleted::InProgress
                && let Some(left) = self.again_after("delete", id).await?
            {
                sleep(left).await;
                return Ok(delete().await?.0);
            }
            Ok(deleted)
        })
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(sweep::sweep(&self.link, &self.swept_to, batch_max))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(list::stats(&self.link))
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(table::look(&self.link, "health"))
    }

    fn outcome_bytes_max(&self) -> usize {
        self.link.options.outcome_bytes_max
    }
}

fn is_unreadable(error: &StoreError) -> bool {
    error.source().and_then(|cause| cause.downcast_ref()) == Some(&Refusal::Unreadable)
}
