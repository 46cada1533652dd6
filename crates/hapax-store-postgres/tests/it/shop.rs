//! [`Shop`]: a store with a table of effects beside it, for work that runs once in a transaction.

use std::sync::Arc;

use hapax_core::{Key, Lookup, Store};
use hapax_store_postgres::{Done, OnceIn, OnceInError, Options, PostgresStore};
use hapax_testkit::operations::scoped;
use hapax_testkit::servers::{PgBouncer, PostgresServer};
use tokio_postgres::{Client, Error, NoTls, Transaction};

use crate::fixture::options;

/// The operation that [`scoped`] names.
const OPERATION: &str = "POST /orders";

pub(crate) struct Shop {
    pub(crate) server: Arc<PostgresServer>,
    pub(crate) store: PostgresStore,
    pub(crate) schema: String,
    /// The URL for its clients.
    pub(crate) url: String,
    _pooler: Option<PgBouncer>,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::open_on(PostgresServer::shared(), None).await
    }

    /// The same behind a pooler in transaction mode.
    pub(crate) async fn open_pooled() -> Self {
        let server = PostgresServer::shared();
        let pooler = PgBouncer::start(&server);
        Self::open_on(server, Some(pooler)).await
    }

    async fn open_on(server: Arc<PostgresServer>, pooler: Option<PgBouncer>) -> Self {
        let url = pooler.as_ref().map_or_else(|| server.url(), PgBouncer::url);
        let options = options(&url);
        let schema = options.schema_name().to_owned();
        let store = options.connect().await.unwrap();
        server.sql(&format!("CREATE TABLE {schema}.effect (key text, number bigserial)"));
        Self { server, store, schema, url, _pooler: pooler }
    }

    /// Another store on the same records.
    pub(crate) fn options(&self) -> Options {
        options(&self.url).schema(&self.schema)
    }

    pub(crate) async fn client(&self) -> Client {
        client(&self.url).await
    }

    /// The statement that is the effect of an order.
    pub(crate) fn effect(&self, name: &str) -> String {
        format!("INSERT INTO {}.effect VALUES ('{name}') RETURNING number", self.schema)
    }

    /// How often the order `name` took effect.
    pub(crate) fn effects(&self, name: &str) -> usize {
        self.server
            .sql(&format!("SELECT count(*) FROM {}.effect WHERE key = '{name}'", self.schema))
            .parse()
            .unwrap()
    }

    /// Waits until a transaction waits for a row of this store.
    pub(crate) async fn until_a_transaction_waits(&self) {
        let asking = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{}%'",
            self.schema
        );
        while self.server.sql(&asking) == "0" {
            tokio::task::yield_now().await;
        }
    }

    /// Whether there is neither a record nor an effect of the order `name`.
    pub(crate) async fn knows_nothing_of(&self, name: &str) -> bool {
        matches!(self.store.get(&scoped(name).id).await.unwrap(), Lookup::Absent) && self.effects(name) == 0
    }

    pub(crate) fn once<'t, 'c>(
        &'t self,
        tx: &'t mut Transaction<'c>,
        name: &str,
    ) -> OnceIn<'t, Transaction<'c>> {
        self.store.once_in(tx, OPERATION, &key(name))
    }

    /// Orders `name` in this transaction; the result is the number of the effect.
    pub(crate) async fn order(
        &self,
        tx: &mut Transaction<'_>,
        name: &str,
    ) -> Result<Done<i64>, OnceInError<Error>> {
        let effect = self.effect(name);
        self.once(tx, name).run(async |tx| tx.query_one(&effect, &[]).await?.try_get(0)).await
    }

    /// The same in a transaction of its own.
    pub(crate) async fn order_and_commit(&self, name: &str) -> Done<i64> {
        let mut client = self.client().await;
        let mut tx = client.transaction().await.unwrap();
        let done = self.order(&mut tx, name).await.unwrap();
        tx.commit().await.unwrap();
        done
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
