//! [`Tx`]: a transaction for the writes of an attempt, committed together with its outcome.
//!
//! The claim is committed first, so other callers see at once that the key is busy, and leases are renewed as usual. The
//! effect happens once because the completion is a statement of the same transaction and applies only while the record
//! still belongs to the attempt. An attempt that lost its record commits nothing.
//!
//! An outcome whose transaction may be lost must never be recorded alone: a retry would replay an effect that did not
//! happen. So an attempt with a transaction stays in the map until the end of the transaction is known.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Class, Fence, Fenced, Lease, Nonce, Recorded, StoreError};
use parking_lot::Mutex;
use tokio::time::timeout_at;
use tokio_postgres::Client;

use crate::error::{CallFailure, Effect, Fault};
use crate::pool::PooledConnection;
use crate::store::PostgresStore;
use crate::write::{Write, complete_one};

/// Releasing the savepoint at the end fails if the work has ended the transaction itself.
const BEGIN: &str = "BEGIN; SAVEPOINT hapax_work";
const COMMIT: &str = "RELEASE SAVEPOINT hapax_work; COMMIT";

/// An open transaction of an attempt, made by [`PostgresStore::transaction_of`].
///
/// It dereferences to the connection, to send statements on. It is committed when the attempt's success is recorded, and
/// only if every handle on it has been dropped. Without success it is rolled back. The work must not end it.
pub struct Tx(Arc<PooledConnection>);

impl Deref for Tx {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.client()
    }
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}

/// The attempts that have claimed their key through this store, with their transactions.
///
/// An attempt that claimed elsewhere has none: its completion would not see the transaction, and would record a success
/// whose effect is never committed.
#[derive(Default)]
pub(crate) struct HandlerTransactions(Mutex<HashMap<Nonce, TxState>>);

enum TxState {
    /// It has no transaction.
    Claimed,
    Open(Arc<PooledConnection>),
    /// Its commit or rollback was started, and the result is not known yet.
    Ending,
}

impl HandlerTransactions {
    /// Adds an attempt that has claimed its key.
    pub(crate) fn claimed(&self, attempt: Nonce) {
        self.0.lock().entry(attempt).or_insert(TxState::Claimed);
    }

    /// The attempt's transaction, if it has begun one.
    fn open(&self, attempt: Nonce) -> Result<Option<Tx>, CallFailure> {
        match self.0.lock().get(&attempt) {
            None => Err(CallFailure::NotClaimed),
            Some(TxState::Claimed) => Ok(None),
            Some(TxState::Open(connection)) => Ok(Some(Tx(connection.clone()))),
            Some(TxState::Ending) => Err(CallFailure::Ending),
        }
    }

    /// Sets the attempt's transaction, unless it has one already; returns the one it has.
    fn attach(&self, attempt: Nonce, connection: PooledConnection) -> Result<Tx, CallFailure> {
        let mut attempts = self.0.lock();
        let state = attempts.get_mut(&attempt).ok_or(CallFailure::Ending)?;
        if let TxState::Claimed = state {
            *state = TxState::Open(Arc::new(connection));
        }
        match state {
            TxState::Open(connection) => Ok(Tx(connection.clone())),
            TxState::Claimed | TxState::Ending => Err(CallFailure::Ending),
        }
    }

    /// Takes the transaction out; the caller must end it.
    fn take(&self, attempt: Nonce) -> Option<TxState> {
        self.0.lock().get_mut(&attempt).map(|state| std::mem::replace(state, TxState::Ending))
    }

    fn forget(&self, attempt: Nonce) {
        self.0.lock().remove(&attempt);
    }
}

impl fmt::Debug for HandlerTransactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerTransactions").field("attempts", &self.0.lock().len()).finish()
    }
}

impl PostgresStore {
    /// A transaction for the work of an attempt that has claimed its key in this store. Its writes are committed together
    /// with the attempt's success, so the effect happens **exactly once**, whichever process crashes at whatever time,
    /// provided that the server keeps what it has committed. The same attempt gets the same transaction again.
    ///
    /// The attempt is the `Context::fence` of the crate `hapax`, for a handler or for the work of `Hapax::once`. With
    /// `OnLapse::Rerun` an attempt that was killed is run again; its effect was not committed.
    ///
    /// # Errors
    /// [`Unavailable`](hapax_core::StoreErrorKind::Unavailable) if there is no connection in time,
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) if the attempt has ended, or has not claimed its key through this
    /// same store value: only that one sees its completion.
    pub async fn transaction_of(&self, attempt: Fence) -> Result<Tx, StoreError> {
        let op = "begin";
        let refused = |failure: CallFailure| failure.error(op, Effect::Read);
        if let Some(tx) = self.handler_txs.open(attempt.nonce).map_err(refused)? {
            return Ok(tx);
        }
        let deadline = self.pool.deadline();
        let connection = self.pool.acquire_for_handler(op, deadline).await?;
        match timeout_at(deadline, connection.client().batch_execute(BEGIN)).await {
            Ok(Ok(())) => self.handler_txs.attach(attempt.nonce, connection).map_err(refused),
            Ok(Err(error)) => Err(Fault::of(&error).error(op, Effect::Read)),
            Err(_elapsed) => Err(refused(CallFailure::TimedOut)),
        }
    }

    /// Ends the attempt's transaction with its outcome. `None` if the outcome must be recorded alone: there is no
    /// transaction, or it was rolled back because the outcome is an error.
    pub(crate) async fn complete_with_tx(
        &self,
        lease: &Lease,
        done: &Recorded,
        retention: Duration,
    ) -> Option<Fenced> {
        let attempt = lease.fence.nonce;
        let state = self.handler_txs.take(attempt)?;
        if done.class == Class::Error {
            self.roll_back(state).await;
            self.handler_txs.forget(attempt);
            return None;
        }
        let is_committed = match state {
            TxState::Claimed => {
                self.handler_txs.forget(attempt);
                return None;
            }
            TxState::Open(connection) => {
                let is_committed = self.commit(connection, lease, done, retention).await;
                if !is_committed {
                    // The release waits for the row, so it sees how the transaction ended, and frees the key if it was rolled back.
                    // If the server cannot be reached, the lease lapses.
                    let _ = self.writes.send(Write::release(lease, None)).await;
                }
                is_committed
            }
            // An earlier call was cancelled while it committed. This one answers at once so as not to be cancelled too.
            TxState::Ending => false,
        };
        self.handler_txs.forget(attempt);
        // The attempt is reported as lost, so that its response is not sent. If it was committed after all, retries get the
        // recorded response.
        Some(if is_committed { Fenced::Applied } else { Fenced::Lost })
    }

    /// Rolls back the attempt's transaction, if it has one.
    pub(crate) async fn roll_back_attempt(&self, lease: &Lease) {
        if let Some(state) = self.handler_txs.take(lease.fence.nonce) {
            self.roll_back(state).await;
            self.handler_txs.forget(lease.fence.nonce);
        }
    }

    /// Returns whether the transaction is known to be committed.
    async fn commit(
        &self,
        connection: Arc<PooledConnection>,
        lease: &Lease,
        done: &Recorded,
        retention: Duration,
    ) -> bool {
        // A remaining handle could still write after the end.
        let Ok(connection) = Arc::try_unwrap(connection) else {
            tracing::error!(id = %lease.id, "the handler has ended and still holds its transaction; rolled back");
            return false;
        };
        let completion = Write::complete(lease, done, retention);
        let committing = async {
            let (client, sql) = (connection.client(), &self.pool.sql);
            let written = complete_one(client, sql, &completion, self.pool.row_wait()).await;
            written == Ok(Fenced::Applied) && connection.client().batch_execute(COMMIT).await.is_ok()
        };
        let is_committed = timeout_at(self.pool.deadline(), committing).await == Ok(true);
        if is_committed {
            connection.return_to_pool();
        }
        is_committed
    }

    /// A rollback needs no confirmation: a connection that does not answer is closed.
    async fn roll_back(&self, state: TxState) {
        let TxState::Open(connection) = state else { return };
        let Ok(connection) = Arc::try_unwrap(connection) else { return };
        let rolling = connection.client().batch_execute("ROLLBACK");
        if let Ok(Ok(())) = timeout_at(self.pool.deadline(), rolling).await {
            connection.return_to_pool();
        }
    }
}
