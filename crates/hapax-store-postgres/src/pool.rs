//! [`ConnectionPool`]: connections, each used by one call or batch at a time, never returned with an open transaction.
//!
//! A call that is dropped or times out closes its connection, so that no other call reads its reply. Every call ends within
//! the configured timeout.

use std::fmt;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use hapax_core::{StoreError, StoreErrorKind};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Client;

use crate::config::Options;
use crate::error::{CallFailure, Effect, Fault, OpenError, ServerMessage};
use crate::sql::Sql;
use crate::tls::{Tls, tls};

/// The timeout factor of calls that go through many records: listing, counting, sweeping.
const LONG_TIMES: u32 = 15;

/// The fraction of a call's timeout that a statement waits for a row locked by another transaction.
const ROW_WAIT_PART: u32 = 8;

/// The connections of one store.
pub(crate) struct ConnectionPool {
    pub(crate) options: Options,
    pub(crate) sql: Sql,
    pub(crate) tls: Tls,
    pool: Pool,
    /// Connections for transactions that last as long as a handler. From the same pool, a handler that waits for the renewal
    /// of its claim could wait for itself.
    work: Pool,
}

/// An exclusive connection for one call. It is closed unless it is returned to the pool.
pub(crate) struct PooledConnection(Option<Object>);

impl ConnectionPool {
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
        // Connections are not tested before every call: that would be another round trip.
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

    /// The deadline of a call that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.options.timeout
    }

    /// The deadline of a call that goes through many records.
    pub(crate) fn long_deadline(&self) -> Instant {
        Instant::now() + self.options.timeout.saturating_mul(LONG_TIMES)
    }

    /// How long a statement waits for a row.
    pub(crate) fn row_wait(&self) -> Duration {
        self.options.timeout / ROW_WAIT_PART
    }

    /// A connection. On failure nothing was sent.
    pub(crate) async fn acquire(
        &self,
        op: &'static str,
        deadline: Instant,
    ) -> Result<PooledConnection, StoreError> {
        acquire(&self.pool, op, deadline).await
    }

    /// A connection for a transaction that lasts as long as a handler.
    pub(crate) async fn acquire_for_handler(
        &self,
        op: &'static str,
        deadline: Instant,
    ) -> Result<PooledConnection, StoreError> {
        acquire(&self.work, op, deadline).await
    }
}

async fn acquire(pool: &Pool, op: &'static str, deadline: Instant) -> Result<PooledConnection, StoreError> {
    match timeout_at(deadline, pool.get()).await {
        Ok(Ok(object)) => Ok(PooledConnection(Some(object))),
        Ok(Err(PoolError::Backend(error))) => {
            Err(StoreError::new(StoreErrorKind::Unavailable, op).with_source(ServerMessage::of(&error)))
        }
        Ok(Err(other)) => Err(StoreError::new(StoreErrorKind::Unavailable, op).with_source(other)),
        Err(_elapsed) => Err(CallFailure::TimedOut.error(op, Effect::Read)),
    }
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").field("options", &self.options).finish_non_exhaustive()
    }
}

impl PooledConnection {
    pub(crate) fn client(&self) -> &Client {
        self.0.as_ref().expect("present until dropped")
    }

    /// For a transaction, which rolls back when it is dropped.
    pub(crate) fn client_mut(&mut self) -> &mut Client {
        self.0.as_mut().expect("present until dropped")
    }

    /// Ends a call with its result.
    pub(crate) fn end<T>(
        self,
        op: &'static str,
        effect: Effect,
        answer: Result<Result<T, tokio_postgres::Error>, Elapsed>,
    ) -> Result<T, StoreError> {
        match answer {
            Ok(Ok(answer)) => {
                self.return_to_pool();
                Ok(answer)
            }
            Ok(Err(error)) => {
                let fault = Fault::of(&error);
                if !fault.ends_connection() {
                    self.return_to_pool();
                }
                Err(fault.error(op, effect))
            }
            Err(_elapsed) => Err(CallFailure::TimedOut.error(op, effect)),
        }
    }

    /// Returns the connection to the pool: nothing is in flight on it.
    pub(crate) fn return_to_pool(mut self) {
        drop(self.0.take());
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            // Detached from the pool, which ends the task that drives the connection.
            drop(Object::take(object));
        }
    }
}
