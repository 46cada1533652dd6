//! [`PostgresStore`]: the handle that callers hold. It checks sizes, puts calls on their way and reads the answers.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::transition::{self, Change, Decision};
use hapax_core::{
    BoxFuture, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, Nonce, Page, Query, Reason,
    Record, RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError, Swept, Timestamp, Verdict,
};
use tokio::time::timeout_at;
use tokio_postgres::Client;

use crate::claim::{self, ROUNDS_MAX};
use crate::config::{Making, Options};
use crate::error::{Effect, Fault, Refusal};
use crate::joined::Joined;
use crate::lane::{Lane, Work};
use crate::link::Link;
use crate::list;
use crate::migrate::{self, MIGRATIONS, MigrateMode, Migrated};
use crate::row::{Found, Seen};
use crate::server::{Judged, Settings};
use crate::sql::Sql;
use crate::sweep;
use crate::wake::Wake;
use crate::write::{self, Write};

/// The most bytes that the names in a scope may have together; they are stored with every record.
pub const SCOPE_BYTES_MAX: usize = 64 << 10;

/// What this store is called where its health is told.
const KIND: &str = "postgres";

/// Keeps records in a PostgreSQL database. See the [crate](crate) for what that promises.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) link: Arc<Link>,
    claims: Lane<ClaimRequest>,
    pub(crate) writes: Lane<Write>,
    wake: Option<Wake>,
    /// Transactions that wait for the outcome of the work that writes in them.
    pub(crate) joined: Joined,
}

impl PostgresStore {
    /// Connects to the server, looks whether it can be a store, and makes the tables where there are none.
    ///
    /// It must be called in a Tokio runtime, which then drives the connections.
    ///
    /// # Errors
    /// [`Unavailable`](hapax_core::StoreErrorKind::Unavailable) when the server cannot be reached in time or may not be
    /// written to, [`Incompatible`](hapax_core::StoreErrorKind::Incompatible) when it is too old or the tables are of another version,
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) when the URL is wrong. Where somebody can do something about it, the
    /// source is an [`OpenError`](crate::OpenError), which says what.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options(url)?.connect().await
    }

    /// More about how to connect.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) when the URL is wrong.
    pub fn options(url: &str) -> Result<Options, StoreError> {
        Options::from_url(url)
    }

    pub(crate) async fn connect_with(options: Options) -> Result<Self, StoreError> {
        let making = options.making;
        let link = Arc::new(Link::new(options)?);
        judge(&link, "open").await?;
        migrate::ensure(&link, making == Making::Make).await?;
        let (claims, writes) = (Lane::new(link.clone()), Lane::new(link.clone()));
        Ok(Self { wake: Wake::new(&link), link, claims, writes, joined: Joined::default() })
    }

    /// Brings the tables to the version that this crate needs, or tells what that would take.
    ///
    /// It is one transaction, and programs that use the tables go on meanwhile.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and when the user may not change the schema.
    pub async fn migrate(options: Options, mode: MigrateMode) -> Result<Migrated, StoreError> {
        let link = Link::new(options)?;
        judge(&link, "migrate").await?;
        migrate::migrate(&link, MIGRATIONS, mode).await
    }

    /// Refuses an outcome that is too large, before anything is sent.
    pub(crate) fn check(&self, op: &'static str, outcome: Option<&Recorded>) -> Result<(), StoreError> {
        match outcome {
            Some(outcome) if outcome.len() > self.link.options.outcome_bytes_max => {
                Err(Refusal::OutcomeTooLarge.error(op, Effect::Read))
            }
            _ => Ok(()),
        }
    }

    async fn look(&self, op: &'static str, id: &RecordId) -> Result<Option<Found>, StoreError> {
        let deadline = self.link.deadline();
        let lent = self.link.lend(op, deadline).await?;
        let found = timeout_at(deadline, claim::look(lent.client(), &self.link.sql, &[*id])).await;
        Ok(lent.end(op, Effect::Read, found)?.remove(id))
    }

    /// Changes a record that was looked at; false when somebody else was quicker.
    async fn change(
        &self,
        op: &'static str,
        id: &RecordId,
        seen: &Seen,
        change: &Change,
    ) -> Result<bool, StoreError> {
        let deadline = self.link.deadline();
        let lent = self.link.lend(op, deadline).await?;
        let (client, sql) = (lent.client(), &self.link.sql);
        let changing = async {
            match change {
                Change::Put(next) => claim::replace(client, sql, seen, next, self.link.row_wait()).await,
                Change::Remove => claim::remove(client, sql, id, seen, self.link.row_wait()).await,
                Change::Keep => Ok(true),
            }
        };
        let changed = timeout_at(deadline, changing).await;
        lent.end(op, Effect::Write, changed)
    }

    /// Looks at a record, decides as the transition function does, and changes the record unless somebody was quicker.
    /// Then it looks again; after many rounds it answers `otherwise`.
    async fn decide<A>(
        &self,
        op: &'static str,
        id: &RecordId,
        otherwise: A,
        decide: impl Fn(Option<&Record>, Timestamp) -> Decision<A>,
    ) -> Result<A, StoreError> {
        for _ in 0..ROUNDS_MAX {
            let Some(found) = self.look(op, id).await? else {
                return Ok(decide(None, Timestamp::default()).answer);
            };
            let Ok(record) = &found.record else { return Err(Refusal::Unreadable.error(op, Effect::Read)) };
            let decision = decide(Some(record), found.now);
            if decision.change == Change::Keep || self.change(op, id, &found.seen, &decision.change).await? {
                return Ok(decision.answer);
            }
        }
        Ok(otherwise)
    }
}

/// What the server is now.
async fn judge(link: &Link, op: &'static str) -> Result<Judged, StoreError> {
    let deadline = link.deadline();
    let lent = link.lend(op, deadline).await?;
    let asking = async { Settings::read(&lent.client().query_typed_one(&link.sql.settings, &[]).await?) };
    let settings = timeout_at(deadline, asking).await;
    Ok(lent.end(op, Effect::Read, settings)?.judge()?)
}

/// What the server promises, without a look at the tables.
pub(crate) async fn server_health(options: Options) -> Result<Health, StoreError> {
    let Judged { promise, warnings } = judge(&Link::new(options)?, "health").await?;
    Ok(Health::new(KIND, promise, warnings))
}

impl Work for ClaimRequest {
    type Answer = Claim;

    fn op(&self) -> &'static str {
        "claim"
    }

    fn id(&self) -> &RecordId {
        &self.key.id
    }

    fn bytes(&self) -> usize {
        self.key.scope.namespace().len() + self.key.scope.operation().len()
    }

    fn run<'a>(
        client: &'a Client,
        sql: &'a Sql,
        batch: &'a [&'a Self],
        row_wait: Duration,
    ) -> BoxFuture<'a, Vec<Result<Claim, Fault>>> {
        Box::pin(claim::claim(client, sql, batch, row_wait))
    }

    /// Whoever holds the record is at work on it.
    fn held(&self) -> Result<Claim, StoreError> {
        Ok(Claim::Busy { lease_left: Duration::ZERO })
    }
}

impl Work for Write {
    type Answer = Fenced;

    fn op(&self) -> &'static str {
        self.op
    }

    fn id(&self) -> &RecordId {
        &self.id
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn run<'a>(
        client: &'a Client,
        sql: &'a Sql,
        batch: &'a [&'a Self],
        row_wait: Duration,
    ) -> BoxFuture<'a, Vec<Result<Fenced, Fault>>> {
        Box::pin(write::write(client, sql, batch, row_wait))
    }

    fn held(&self) -> Result<Fenced, StoreError> {
        Err(Refusal::Held.error(self.op, Effect::Write))
    }
}

impl Store for PostgresStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            if Work::bytes(ask) > SCOPE_BYTES_MAX {
                return Err(Refusal::ScopeTooLarge.error("claim", Effect::Read));
            }
            let claim = self.claims.send(ask.clone()).await?;
            if let Claim::Acquired(lease) = &claim {
                self.joined.claimed(lease.fence.nonce);
            }
            Ok(claim)
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.writes.send(Write::renew(lease)))
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            self.check("complete", Some(done))?;
            if let Some(fenced) = self.complete_joined(lease, done, retention).await {
                return Ok(fenced);
            }
            self.writes.send(Write::complete(lease, done, retention)).await
        })
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            self.check("release", answered)?;
            self.take_back(lease).await;
            self.writes.send(Write::release(lease, answered)).await
        })
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            self.take_back(lease).await;
            self.writes.send(Write::abandon(lease, reason)).await
        })
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        Box::pin(async move {
            if let Verdict::Applied { recorded, .. } = &settlement.verdict {
                self.check("settle", Some(recorded))?;
            }
            let decide = |record: Option<&Record>, now| transition::settle(record, settlement, now);
            self.decide("settle", id, Settled::Changed, decide).await
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(async move {
            let Some(found) = self.look("get", id).await? else { return Ok(Lookup::Absent) };
            Ok(match found.record {
                Ok(record) => Lookup::Found { record: Box::new(record), now: found.now },
                Err(why) => Lookup::Unreadable { why },
            })
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(list::list(&self.link, query))
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        let decide = move |record: Option<&Record>, now| transition::delete(record, nonce, now);
        Box::pin(self.decide("delete", id, Deleted::Changed, decide))
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(sweep::sweep(&self.link, batch_max))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(list::stats(&self.link))
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(async move {
            let Judged { promise, mut warnings } = judge(&self.link, "health").await?;
            warnings.extend(self.wake.as_ref().and_then(Wake::warning).map(str::to_owned));
            Ok(Health::new(KIND, promise, warnings))
        })
    }

    fn outcome_bytes_max(&self) -> usize {
        self.link.options.outcome_bytes_max
    }

    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        self.wake.as_ref().map(|wake| wake.watch(*id))
    }
}
