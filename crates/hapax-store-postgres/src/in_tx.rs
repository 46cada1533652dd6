//! [`InTx`]: a handler of events whose writes are committed together with its outcome (a transactional inbox).

use std::error::Error as _;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use hapax::events::{Event, FromEvent, Handler, HandlerOutcome};
use hapax::{Context, IntoOutcome};
use hapax_core::{BoxFuture, Fence, StoreError, StoreErrorKind};
use serde::Serialize;
use tokio::time::sleep;

use crate::handler_tx::Tx;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Turns `Fn(S, Tx, P) -> Future<Output = Result<T, E>>` into a handler of events for a
    /// [`Router`](hapax::events::Router). What it writes in its [`Tx`] is committed together with its outcome, before the
    /// event is acknowledged, so those writes happen **exactly once** for each event, whichever process crashes at whatever
    /// time, provided that the server keeps what it has committed.
    ///
    /// An error, a panic and a lost lease roll the writes back. The handler has no [`Context`]: what it does elsewhere, such
    /// as a call to another service, may happen more often than once and has no key here; such calls belong into a handler of
    /// their own.
    ///
    /// The `Hapax` of the consumer must be made with this same store value, alone or as the store behind `Tiers`. A handler
    /// holds a connection while it runs: give the store as many
    /// ([`Options::pool`](crate::Options::pool)) as the consumer runs handlers at a time. One that gets none is waited for,
    /// up to 15 times the store's timeout.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use hapax::Hapax;
    /// use hapax::events::{Data, Router};
    /// use hapax_store_postgres::{PostgresStore, Tx};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Order {
    ///     id: String,
    /// }
    ///
    /// async fn plan_shipment(_: (), tx: Tx, Data(order): Data<Order>) -> Result<(), tokio_postgres::Error> {
    ///     tx.execute("INSERT INTO shipment (order_id) VALUES ($1)", &[&order.id]).await?;
    ///     Ok(())
    /// }
    ///
    /// # async fn router() -> Result<(), hapax::core::StoreError> {
    /// let store = Arc::new(PostgresStore::connect("postgres://shop@db/orders").await?);
    /// let hapax = Hapax::builder(store.clone()).build();
    /// let router = Router::new(()).on("order.created", store.in_tx(plan_shipment));
    /// # drop((hapax, router));
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_tx<H>(self: &Arc<Self>, handler: H) -> InTx<H> {
        InTx { store: self.clone(), handler: Arc::new(handler) }
    }

    /// The attempt's transaction. Waits while all connections are in use or the server does not answer: the attempt holds its
    /// key meanwhile, and a failure would count as one of the handler.
    async fn begin_patiently(&self, attempt: Fence) -> Result<Tx, StoreError> {
        let deadline = self.pool.long_deadline();
        loop {
            match self.transaction_of(attempt).await {
                Err(error)
                    if error.kind() == StoreErrorKind::Unavailable
                        && tokio::time::Instant::now() + self.pool.row_wait() < deadline =>
                {
                    sleep(self.pool.row_wait()).await;
                }
                begun => return begun,
            }
        }
    }
}

/// A handler of events with a transaction, made by [`PostgresStore::in_tx`].
pub struct InTx<H> {
    store: Arc<PostgresStore>,
    handler: Arc<H>,
}

impl<H> Clone for InTx<H> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), handler: self.handler.clone() }
    }
}

impl<H> fmt::Debug for InTx<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InTx").finish_non_exhaustive()
    }
}

impl<S, P, H, W> Handler<S, (Tx, P)> for InTx<H>
where
    S: Send + 'static,
    P: FromEvent + Send + 'static,
    H: Fn(S, Tx, P) -> W + Send + Sync + 'static,
    W: Future + Send + 'static,
    W::Output: IntoOutcome,
    <W::Output as IntoOutcome>::Value: Serialize,
{
    fn call(&self, state: S, context: Context, event: Event) -> BoxFuture<'static, HandlerOutcome> {
        let payload = match P::from_event(&event) {
            Ok(payload) => payload,
            Err(undecodable) => return Box::pin(std::future::ready(undecodable.into())),
        };
        let InTx { store, handler } = self.clone();
        Box::pin(async move {
            match store.begin_patiently(context.fence()).await {
                Ok(tx) => HandlerOutcome::of(handler(state, tx, payload).await),
                // Nothing has run.
                Err(error) => HandlerOutcome::of(Err::<(), _>(NotBegun::of(&error))),
            }
        })
    }
}

/// Why a handler did not run. The event is tried again: a server comes back, a configuration is corrected.
#[derive(Debug, thiserror::Error)]
#[error("the transaction could not be started: {0}")]
struct NotBegun(String);

impl NotBegun {
    fn of(error: &StoreError) -> Self {
        let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        if error.kind() == StoreErrorKind::Invalid {
            tracing::error!(error = %cause, "the handler got no transaction");
        }
        Self(cause)
    }
}
