//! [`PostgresStore`]: checks sizes, dispatches calls and maps their results.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::transition::{self, Change, Decision};
use hapax_core::{
    BoxFuture, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, Nonce, Page, Query, Reason,
    Record, RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError, Swept, Timestamp, Verdict,
};
use tokio::time::timeout_at;
use tokio_postgres::Client;

use crate::batcher::{BatchCall, Batcher};
use crate::claim::{self, ATTEMPTS_MAX};
use crate::config::{CreateMode, Options};
use crate::error::{CallFailure, Effect, Fault};
use crate::handler_tx::HandlerTransactions;
use crate::list;
use crate::migrate::{self, MIGRATIONS, MigrateMode, Migrated};
use crate::notifications::Notifications;
use crate::pool::ConnectionPool;
use crate::row::{FetchedRow, RowVersion};
use crate::server::{Assessment, Settings};
use crate::sql::Sql;
use crate::sweep;
use crate::write::{self, Write};

/// The limit of a scope's names in bytes; they are stored with every record.
pub const SCOPE_BYTES_MAX: usize = 64 << 10;

/// The name of this store in its health.
const KIND: &str = "postgres";

/// Keeps records in a PostgreSQL database. See the [crate](crate) for its guarantees.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) pool: Arc<ConnectionPool>,
    claims: Batcher<ClaimRequest>,
    pub(crate) writes: Batcher<Write>,
    notifications: Option<Notifications>,
    /// The transactions of attempts that are still running.
    pub(crate) handler_txs: HandlerTransactions,
}

impl PostgresStore {
    /// Connects to the server, verifies that it can be a store, and creates the tables if they are absent.
    ///
    /// It must be called in a Tokio runtime, which then drives the connections.
    ///
    /// # Errors
    /// [`Unavailable`](hapax_core::StoreErrorKind::Unavailable) if the server cannot be reached in time or is read-only,
    /// [`Incompatible`](hapax_core::StoreErrorKind::Incompatible) if it is too old or the tables have another version,
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) if the URL is malformed. If an operator can fix it, the source is an
    /// [`OpenError`](crate::OpenError), which says how.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options(url)?.connect().await
    }

    /// Parses a URL, for further options.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) if the URL is malformed.
    pub fn options(url: &str) -> Result<Options, StoreError> {
        Options::from_url(url)
    }

    pub(crate) async fn connect_with(options: Options) -> Result<Self, StoreError> {
        let create_mode = options.create_mode;
        let pool = Arc::new(ConnectionPool::new(options)?);
        assess_server(&pool, "open").await?;
        migrate::ensure(&pool, create_mode == CreateMode::Create).await?;
        let (claims, writes) = (Batcher::new(pool.clone()), Batcher::new(pool.clone()));
        Ok(Self {
            notifications: Notifications::new(&pool),
            pool,
            claims,
            writes,
            handler_txs: HandlerTransactions::default(),
        })
    }

    /// Upgrades the tables to the version that this crate needs, or reports the necessary steps.
    ///
    /// It is one transaction; programs that use the tables continue meanwhile.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and if the user may not change the schema.
    pub async fn migrate(options: Options, mode: MigrateMode) -> Result<Migrated, StoreError> {
        let pool = ConnectionPool::new(options)?;
        assess_server(&pool, "migrate").await?;
        migrate::migrate(&pool, MIGRATIONS, mode).await
    }

    /// Refuses an outcome that is too large, before anything is sent.
    pub(crate) fn check(&self, op: &'static str, outcome: Option<&Recorded>) -> Result<(), StoreError> {
        match outcome {
            Some(outcome) if outcome.len() > self.pool.options.outcome_bytes_max => {
                Err(CallFailure::OutcomeTooLarge.error(op, Effect::Read))
            }
            _ => Ok(()),
        }
    }

    async fn fetch(&self, op: &'static str, id: &RecordId) -> Result<Option<FetchedRow>, StoreError> {
        let deadline = self.pool.deadline();
        let connection = self.pool.acquire(op, deadline).await?;
        let found = timeout_at(deadline, claim::fetch(connection.client(), &self.pool.sql, &[*id])).await;
        Ok(connection.end(op, Effect::Read, found)?.remove(id))
    }

    /// Changes a record; false if it was changed concurrently.
    async fn change(
        &self,
        op: &'static str,
        id: &RecordId,
        seen: &RowVersion,
        change: &Change,
    ) -> Result<bool, StoreError> {
        let deadline = self.pool.deadline();
        let connection = self.pool.acquire(op, deadline).await?;
        let (client, sql) = (connection.client(), &self.pool.sql);
        let changing = async {
            match change {
                Change::Put(next) => claim::replace(client, sql, seen, next, self.pool.row_wait()).await,
                Change::Remove => claim::remove(client, sql, id, seen, self.pool.row_wait()).await,
                Change::Keep => Ok(true),
            }
        };
        let changed = timeout_at(deadline, changing).await;
        connection.end(op, Effect::Write, changed)
    }

    /// Reads a record, applies the transition function, and writes the result unless the record was changed concurrently. Then
    /// it starts over; after too many rounds it returns `otherwise`.
    async fn decide<A>(
        &self,
        op: &'static str,
        id: &RecordId,
        otherwise: A,
        decide: impl Fn(Option<&Record>, Timestamp) -> Decision<A>,
    ) -> Result<A, StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(found) = self.fetch(op, id).await? else {
                return Ok(decide(None, Timestamp::default()).answer);
            };
            let Ok(record) = &found.record else {
                return Err(CallFailure::Unreadable.error(op, Effect::Read));
            };
            let decision = decide(Some(record), found.now);
            if decision.change == Change::Keep || self.change(op, id, &found.seen, &decision.change).await? {
                return Ok(decision.answer);
            }
        }
        Ok(otherwise)
    }
}

/// Reads the server's settings and assesses them.
async fn assess_server(pool: &ConnectionPool, op: &'static str) -> Result<Assessment, StoreError> {
    let deadline = pool.deadline();
    let connection = pool.acquire(op, deadline).await?;
    let asking =
        async { Settings::read(&connection.client().query_typed_one(&pool.sql.settings, &[]).await?) };
    let settings = timeout_at(deadline, asking).await;
    Ok(connection.end(op, Effect::Read, settings)?.assess()?)
}

/// What the server promises, without checking the tables.
pub(crate) async fn server_health(options: Options) -> Result<Health, StoreError> {
    let Assessment { promise, warnings } = assess_server(&ConnectionPool::new(options)?, "health").await?;
    Ok(Health::new(KIND, promise, warnings))
}

impl BatchCall for ClaimRequest {
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

    /// The transaction that holds the record is working on it.
    fn held(&self) -> Result<Claim, StoreError> {
        Ok(Claim::Busy { lease_left: Duration::ZERO })
    }
}

impl BatchCall for Write {
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
        Err(CallFailure::Held.error(self.op, Effect::Write))
    }
}

impl Store for PostgresStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            if BatchCall::bytes(ask) > SCOPE_BYTES_MAX {
                return Err(CallFailure::ScopeTooLarge.error("claim", Effect::Read));
            }
            let claim = self.claims.send(ask.clone()).await?;
            if let Claim::Acquired(lease) = &claim {
                self.handler_txs.claimed(lease.fence.nonce);
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
            if let Some(fenced) = self.complete_with_tx(lease, done, retention).await {
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
            self.roll_back_attempt(lease).await;
            self.writes.send(Write::release(lease, answered)).await
        })
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            self.roll_back_attempt(lease).await;
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
            let Some(found) = self.fetch("get", id).await? else { return Ok(Lookup::Absent) };
            Ok(match found.record {
                Ok(record) => Lookup::Found { record: Box::new(record), now: found.now },
                Err(why) => Lookup::Unreadable { why },
            })
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(list::list(&self.pool, query))
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        let decide = move |record: Option<&Record>, now| transition::delete(record, nonce, now);
        Box::pin(self.decide("delete", id, Deleted::Changed, decide))
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(sweep::sweep(&self.pool, batch_max))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(list::stats(&self.pool))
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(async move {
            let Assessment { promise, mut warnings } = assess_server(&self.pool, "health").await?;
            warnings.extend(self.notifications.as_ref().and_then(Notifications::warning).map(str::to_owned));
            Ok(Health::new(KIND, promise, warnings))
        })
    }

    fn outcome_bytes_max(&self) -> usize {
        self.pool.options.outcome_bytes_max
    }

    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        self.notifications.as_ref().map(|notifications| notifications.watch(*id))
    }
}
