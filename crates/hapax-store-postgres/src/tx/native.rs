//! [`OnceIn`] on a transaction of tokio-postgres, or of a pool of those.

use hapax_core::{Key, Scope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Transaction;

use super::{Done, OnceIn, OnceInError, fault};
use crate::error::Fault;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Runs work once in the caller's own transaction: its writes, the claim of the key and the outcome are committed
    /// together, or none of them is. Within that transaction the effect happens **exactly once**, whichever process crashes
    /// at whatever time, provided that the server keeps what it has committed.
    ///
    /// The transaction must belong to the database that the store is in. The store's own connections are not used.
    ///
    /// ```no_run
    /// use hapax_core::{Key, Scope};
    /// use hapax_store_postgres::{OnceInError, PostgresStore};
    ///
    /// # async fn transfer(store: &PostgresStore, client: &mut tokio_postgres::Client) -> Result<i64, Box<dyn std::error::Error>> {
    /// let key = Key::new("order-4711")?;
    /// let mut tx = client.transaction().await?;
    /// let done = store
    ///     .once_in(&mut tx, Scope::new("transfer"), &key)
    ///     .input(&("alice", "bob", 100))
    ///     .run(async |tx| {
    ///         tx.execute("UPDATE account SET balance = balance - 100 WHERE name = 'alice'", &[]).await?;
    ///         tx.execute("UPDATE account SET balance = balance + 100 WHERE name = 'bob'", &[]).await?;
    ///         let row = tx.query_one("SELECT balance FROM account WHERE name = 'alice'", &[]).await?;
    ///         row.try_get::<_, i64>(0)
    ///     })
    ///     .await?;
    /// // Nothing takes effect before this. If its reply is lost, repeat the whole transaction.
    /// tx.commit().await?;
    /// # Ok(done.value)
    /// # }
    /// ```
    pub fn once_in<'t, 'c>(
        &'t self,
        tx: &'t mut Transaction<'c>,
        scope: impl Into<Scope>,
        key: &Key,
    ) -> OnceIn<'t, Transaction<'c>> {
        OnceIn::new(self, tx, scope.into(), key)
    }
}

impl OnceIn<'_, Transaction<'_>> {
    /// Runs `work` in the transaction, or returns the result of an earlier transaction.
    ///
    /// *Atomic*: with the rest of the transaction. *Dropped*: as when the work fails. *Lost reply*: nothing is committed yet;
    /// after a lost reply to `COMMIT`, the same call in another transaction returns the result if it was committed.
    ///
    /// The work must write through the given transaction, and must not begin or end it. Effects elsewhere can happen more
    /// than once: a transaction that is rolled back is run again. A refusal that retries must get too is an `Ok` value.
    ///
    /// # Errors
    /// [`OnceInError`]. The transaction is then as it was before the call, unless the error says that it must be rolled
    /// back; the caller decides whether to continue with it.
    pub async fn run<T, E, W>(mut self, work: W) -> Result<Done<T>, OnceInError<E>>
    where
        T: Serialize + DeserializeOwned,
        W: AsyncFnOnce(&mut Transaction<'_>) -> Result<T, E>,
    {
        self.operation.check()?;
        let operation = &self.operation;
        // If dropped, it rolls back to its savepoint.
        let mut inner = self.tx.transaction().await.map_err(|error| fault("claim", Fault::of(&error)))?;
        let claimed = match operation.claim(&inner).await {
            Ok(claimed) => claimed,
            Err(unrun) => {
                let back = inner.rollback().await;
                let answer = operation.answer(unrun)?;
                return back.map(|()| answer).map_err(|error| fault("claim", Fault::of(&error)));
            }
        };
        match work(&mut inner).await {
            Ok(value) => {
                operation.complete(&inner, &claimed, &value).await?;
                inner.commit().await.map_err(|error| fault("complete", Fault::of(&error)))?;
                Ok(Done { value, replayed: false })
            }
            Err(error) => {
                // If this fails, the connection is lost, and with it the transaction.
                let _ = inner.rollback().await;
                Err(OnceInError::Failed(error))
            }
        }
    }
}
