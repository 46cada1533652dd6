//! The way to the server: a pool of connections, each used by one call or batch at a time, none of them ever left with
//! an open transaction.
//!
//! A call that is dropped or runs out of time takes its connection with it, so that nobody reads an answer that was
//! meant for somebody else. Every call ends within the configured time.

use std::fmt;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use hapax_core::{StoreError, StoreErrorKind};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Client;

use crate::config::Options;
use crate::error::{Effect, Fault, OpenError, Refusal, Told};
use crate::sql::Sql;
use crate::tls::{Tls, tls};

/// How many times longer than others those calls may take that go through many records: listing, counting, sweeping.
const LONG_TIMES: u32 = 15;

/// A statement waits this part of a call's time for a row that somebody's open transaction holds.
const ROW_WAIT_PART: u32 = 8;

/// A way to one store.
pub(crate) struct Link {
    pub(crate) options: Options,
    pub(crate) sql: Sql,
    pub(crate) tls: Tls,
    pool: Pool,
    /// Connections for transactions that last as long as somebody's work. Were they of the same pool, work that waits
    /// for its claim to be renewed could wait for itself.
    work: Pool,
}

/// A connection for one call. Unless it is given back, it is closed.
pub(crate) struct Lent(Option<Object>);

impl Link {
    pub(crate) fn new(mut options: Options) -> Result<Self, StoreError> {
        if !crate::sql::is_schema(&options.schema) {
            return Err(OpenError::Url { why: "the schema has a name that needs quotes".to_owned() }.into());
        }
        let tls = tls(&options)?;
        let each = options.connect_timeout();
        options.config.connect_timeout(each).tcp_user_timeout(options.timeout);
        if options.config.get_application_name().is_none() {
            options.config.application_name("hapax");
        }
        // A connection is not asked whether it works before every call: that would be another round trip.
        let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = || {
            let manager = Manager::from_config(options.config.clone(), tls.clone(), how.clone());
            Pool::builder(manager)
                .max_size(options.pool)
                .build()
                .map_err(|error| StoreError::new(StoreErrorKind::Invalid, "open").with_source(error))
        };
        let (pool, work) = (pool()?, pool()?);
        Ok(Self { sql: Sql::new(&options.schema), options, tls, pool, work })
    }

    /// When a call that begins now must have ended.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.options.timeout
    }

    /// The same for a call that goes through many records.
    pub(crate) fn long_deadline(&self) -> Instant {
        Instant::now() + self.options.timeout.saturating_mul(LONG_TIMES)
    }

    /// How long a statement waits for a row.
    pub(crate) fn row_wait(&self) -> Duration {
        self.options.timeout / ROW_WAIT_PART
    }

    /// A connection. Without one nothing was sent.
    pub(crate) async fn lend(&self, op: &'static str, deadline: Instant) -> Result<Lent, StoreError> {
        lend(&self.pool, op, deadline).await
    }

    /// A connection for a transaction that lasts as long as somebody's work.
    pub(crate) async fn lend_for_work(
        &self,
        op: &'static str,
        deadline: Instant,
    ) -> Result<Lent, StoreError> {
        lend(&self.work, op, deadline).await
    }
}

async fn lend(pool: &Pool, op: &'static str, deadline: Instant) -> Result<Lent, StoreError> {
    match timeout_at(deadline, pool.get()).await {
        Ok(Ok(object)) => Ok(Lent(Some(object))),
        Ok(Err(PoolError::Backend(error))) => {
            Err(StoreError::new(StoreErrorKind::Unavailable, op).with_source(Told::of(&error)))
        }
        Ok(Err(other)) => Err(StoreError::new(StoreErrorKind::Unavailable, op).with_source(other)),
        Err(_elapsed) => Err(Refusal::TimedOut.error(op, Effect::Read)),
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Lent {
    pub(crate) fn client(&self) -> &Client {
        self.0.as_ref().expect("it is taken out only by those who take all of it")
    }

    /// For a transaction, which rolls itself back when it is dropped.
    pub(crate) fn client_mut(&mut self) -> &mut Client {
        self.0.as_mut().expect("it is taken out only by those who take all of it")
    }

    /// Ends a call with what came of it in its time.
    pub(crate) fn end<T>(
        self,
        op: &'static str,
        effect: Effect,
        answer: Result<Result<T, tokio_postgres::Error>, Elapsed>,
    ) -> Result<T, StoreError> {
        match answer {
            Ok(Ok(answer)) => {
                self.give_back();
                Ok(answer)
            }
            Ok(Err(error)) => {
                let fault = Fault::of(&error);
                if !fault.ends_connection() {
                    self.give_back();
                }
                Err(fault.error(op, effect))
            }
            Err(_elapsed) => Err(Refusal::TimedOut.error(op, effect)),
        }
    }

    /// Puts the connection back for others: nothing is under way on it.
    pub(crate) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            // Out of the pool, and with it goes the task that keeps the connection.
            drop(Object::take(object));
        }
    }
}
