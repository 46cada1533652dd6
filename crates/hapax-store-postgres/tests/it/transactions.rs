//! Rows locked by another transaction: callers that need them get an answer soon, and other calls do not wait.

use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{Claim, Deleted, Fenced, Reason, Store, StoreErrorKind};
use hapax_testkit::servers::PostgresServer;
use tokio_postgres::{Client, NoTls};

use crate::fixture::{RETENTION, acquire, ask, done, options};

/// The store's timeout in these tests. A statement waits a fraction of it for a row.
const TIMEOUT: Duration = Duration::from_secs(8);

async fn client(server: &PostgresServer) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn a_locked_row_blocks_no_other_call() {
    let server = PostgresServer::shared();
    let options = options(&server.url()).timeout(TIMEOUT);
    let schema = options.schema_name().to_owned();
    let store = options.connect().await.unwrap();
    let held = acquire(&store, "held").await;
    let others = [acquire(&store, "a").await, acquire(&store, "b").await];
    let holder = client(&server).await;
    let hold = format!("BEGIN; SELECT 1 FROM {schema}.record WHERE id = '\\x{}' FOR UPDATE", held.id);
    holder.batch_execute(&hold).await.unwrap();

    let outcome = done("done");
    let leases = [&held, &others[0], &others[1]];
    let written = join_all(leases.map(|lease| store.complete(lease, &outcome, RETENTION))).await;
    assert_eq!(written[0].as_ref().unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert!(written[1..].iter().all(|written| matches!(written, Ok(Fenced::Applied))), "{written:?}");
    // Reads do not wait.
    assert!(matches!(store.claim(&ask("held")).await.unwrap(), Claim::Busy { .. }));

    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.complete(&held, &outcome, RETENTION).await.unwrap(), Fenced::Applied);
}

#[tokio::test]
async fn removing_or_watching_a_locked_row_blocks_no_other_call() {
    let server = PostgresServer::shared();
    let options = options(&server.url()).timeout(TIMEOUT);
    let schema = options.schema_name().to_owned();
    let store = options.connect().await.unwrap();
    let held = acquire(&store, "held").await;
    store.abandon(&held, Reason::Declared).await.unwrap();
    let others = [acquire(&store, "a").await, acquire(&store, "b").await];
    let holder = client(&server).await;
    let hold = format!("BEGIN; SELECT 1 FROM {schema}.record WHERE id = '\\x{}' FOR UPDATE", held.id);
    holder.batch_execute(&hold).await.unwrap();

    let refused = store.delete(&held.id, held.fence.nonce).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    let notification = store.watch(&held.id).unwrap();
    // The first could be marked before the locked one, the second only after it.
    for other in &others {
        store.watch(&other.id).unwrap().await;
    }

    holder.batch_execute("ROLLBACK").await.unwrap();
    // A new watcher starts the next round at once.
    drop(store.watch(&held.id));
    notification.await;
    assert_eq!(store.delete(&held.id, held.fence.nonce).await.unwrap(), Deleted::Applied);
}

#[tokio::test]
async fn a_key_that_is_claimed_in_an_open_transaction_is_busy() {
    let server = PostgresServer::shared();
    let options = options(&server.url()).timeout(TIMEOUT);
    let schema = options.schema_name().to_owned();
    let store = options.connect().await.unwrap();
    acquire(&store, "template").await;
    let holder = client(&server).await;
    let wanted = ask("wanted");
    let insert = format!(
        "BEGIN; CREATE TEMP TABLE copied AS SELECT * FROM {schema}.record; UPDATE copied SET id = '\\x{}';
         INSERT INTO {schema}.record SELECT * FROM copied",
        wanted.key.id
    );
    holder.batch_execute(&insert).await.unwrap();
    let asks = [wanted.clone(), ask("a"), ask("b")];
    let claims = join_all(asks.iter().map(|ask| store.claim(ask))).await;
    assert!(matches!(claims[0], Ok(Claim::Busy { .. })), "{claims:?}");
    assert!(claims[1..].iter().all(|claim| matches!(claim, Ok(Claim::Acquired(_)))), "{claims:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(matches!(store.claim(&wanted).await.unwrap(), Claim::Acquired(_)));
}
