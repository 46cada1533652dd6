//! [`OnceIn`] on a transaction of tokio-postgres, or of a pool that lends those.

use hapax_core::{Key, Scope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Transaction;

use super::{Done, OnceIn, OnceInError, fault};
use crate::error::Fault;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Runs work once in the caller's own transaction: its writes, the claim of the key and the outcome are committed
    /// together, or none of them is. Within that transaction the effect happens **exactly once**, whoever is killed
    /// whenever, as far as the server keeps what it has committed.
    ///
    /// The transaction must be one of the database that the store is in. The store's own connections are not used.
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
    /// // Nothing has happened before this. When its answer is lost, do all of it again.
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
    /// Runs `work` in the transaction, or answers with the result of the transaction that came first.
    ///
    /// *Atomic*: with whatever else the transaction does. *Dropped*: as when the work fails. *Lost answer*: nothing is
    /// committed yet; after a lost answer to `COMMIT`, the same call in another transaction tells what became of it.
    ///
    /// The work must write through the transaction that it is given, and leave beginning and ending it to the caller.
    /// What it does elsewhere can happen more often: a transaction that is rolled back is run again. A refusal that
    /// retries should be answered with as well is an `Ok` that says so.
    ///
    /// # Errors
    /// [`OnceInError`]. The transaction is as it was before the call then, unless the error says that it must be rolled
    /// back; whether to go on with it is for the caller to say.
    pub async fn run<T, E, W>(mut self, work: W) -> Result<Done<T>, OnceInError<E>>
    where
        T: Serialize + DeserializeOwned,
        W: AsyncFnOnce(&mut Transaction<'_>) -> Result<T, E>,
    {
        self.asked.check()?;
        let asked = &self.asked;
        // Dropped, it goes back to its savepoint.
        let mut inner = self.tx.transaction().await.map_err(|error| fault("claim", Fault::of(&error)))?;
        let claimed = match asked.claim(&inner).await {
            Ok(claimed) => claimed,
            Err(unrun) => {
                let back = inner.rollback().await;
                let answer = asked.answer(unrun)?;
                return back.map(|()| answer).map_err(|error| fault("claim", Fault::of(&error)));
            }
        };
        match work(&mut inner).await {
            Ok(value) => {
                asked.complete(&inner, &claimed, &value).await?;
                inner.commit().await.map_err(|error| fault("complete", Fault::of(&error)))?;
                Ok(Done { value, replayed: false })
            }
            Err(error) => {
                // Should this fail, the connection is gone, and with it the transaction.
                let _ = inner.rollback().await;
                Err(OnceInError::Failed(error))
            }
        }
    }
}
