//! The conformance suite: directly, and through a pooler in transaction mode.
//!
//! Each case has its own schema on one server. The function that returns the store's time is replaced by one that reads a
//! table, so that a test controls the clock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{RecordId, Store};
use hapax_store_postgres::PostgresStore;
use hapax_testkit::servers::{PgBouncer, PostgresServer};
use hapax_testkit::{Rig, store_suite};
use tokio_postgres::{Client, NoTls};

use crate::fixture::options;

struct PostgresRig {
    store: Arc<PostgresStore>,
    schema: String,
    client: Client,
}

impl PostgresRig {
    async fn new(server: &PostgresServer, url: &str) -> Self {
        let options = options(url);
        let schema = options.schema_name().to_owned();
        let store = Arc::new(options.connect().await.unwrap());
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let clock = format!(
            "CREATE TABLE {schema}.clock AS SELECT {schema}.now_ms() AS ms;
             CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql AS
             $$ SELECT ms FROM {schema}.clock $$"
        );
        client.batch_execute(&clock).await.unwrap();
        Self { store, schema, client }
    }

    async fn execute(&self, statement: &str) {
        self.client.batch_execute(&statement.replace("SCHEMA", &self.schema)).await.unwrap();
    }
}

impl Rig for PostgresRig {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, span: Duration) {
        self.execute(&format!("UPDATE SCHEMA.clock SET ms = ms + {}", span.as_millis())).await;
    }

    async fn damage(&self, id: &RecordId) -> bool {
        self.execute(&format!("UPDATE SCHEMA.record SET operation = '\\x00' WHERE id = '\\x{id}'")).await;
        true
    }
}

/// Runs every case in one test on one server: starting a server for each would take longer than the cases.
fn pass_all(server: &PostgresServer, url: &str) {
    let mut failed = Vec::new();
    for case in store_suite::cases::<PostgresRig>() {
        let checked = catch_unwind(AssertUnwindSafe(|| {
            store_suite::run(async {
                let rig = PostgresRig::new(server, url).await;
                (case.check)(&rig).await;
            });
        }));
        if checked.is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "{failed:?} fail");
}

#[test]
fn directly() {
    let server = PostgresServer::shared();
    pass_all(&server, &server.url());
}

#[test]
fn through_a_pooler() {
    let server = PostgresServer::shared();
    let pooler = PgBouncer::start(&server);
    pass_all(&server, &format!("{}?listen=127.0.0.1:{}", pooler.url(), server.port()));
}
