//! A sweep of many records: the rows it reads, and the settings it leaves on its connection.

use hapax_core::{Store, Swept};
use hapax_testkit::servers::PostgresServer;

use crate::fixture::options;

/// Enough, and in such disorder, that the planner would rather sort them all than read the first few from the index.
const DUE: usize = 2_000;
const BATCH: usize = 10;

#[tokio::test]
async fn a_batch_reads_one_row_more_than_it_removes() {
    let server = PostgresServer::shared();
    let options = options(&server.url()).pool(1);
    let schema = options.schema_name().to_owned();
    let store = options.connect().await.unwrap();
    // The seal of every row that is read is computed; the computations are counted.
    server.sql(&format!(
        "CREATE SEQUENCE {schema}.read;
         CREATE OR REPLACE FUNCTION {schema}.seal_of(
             id bytea, algorithm smallint, fingerprint bytea, namespace bytea, principal bytea, operation bytea
         ) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('{schema}.read'); RETURN id; END $$;
         INSERT INTO {schema}.record
             SELECT id, 1, 2, 0, '', 1, 0, 0, 0, 0, number, 1, '', '', NULL, '', id
             FROM generate_series(1, {DUE}) AS number, sha256(int4send(number)) AS id
             ORDER BY id;
         ANALYZE {schema}.record"
    ));
    let health = store.health().await.unwrap();

    let swept = store.sweep(BATCH).await.unwrap();

    assert_eq!(swept, Swept { expired: BATCH as u64, dropped: 0, more: true });
    let read = server.sql(&format!("SELECT last_value FROM {schema}.read"));
    assert_eq!(read.parse::<usize>().unwrap(), BATCH + 1);
    let oldest = server.sql(&format!("SELECT min(expires_at) FROM {schema}.record"));
    assert_eq!(oldest, (BATCH + 1).to_string(), "the oldest go first");
    assert_eq!(store.health().await.unwrap(), health, "the next commit on this connection is synchronous");
}
