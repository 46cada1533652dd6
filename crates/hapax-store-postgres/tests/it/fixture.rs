//! A store in its own schema, and short helpers for requests to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hapax_core::{Claim, Recorded, Store};
use hapax_store_postgres::{Options, PostgresStore};
pub(crate) use hapax_testkit::operations::{RETENTION, acquire, ask, done, finish};
use hapax_testkit::servers::PostgresServer;

/// Long enough for a machine that stalls: tests that wait for an answer do not want a timeout.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A name that is unique in this process.
pub(crate) fn schema() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn options(url: &str) -> Options {
    PostgresStore::options(url).unwrap().timeout(PATIENCE).schema(schema())
}

/// A store of its own on the shared server.
pub(crate) async fn connect() -> (Arc<PostgresServer>, PostgresStore) {
    let server = PostgresServer::shared();
    let store = options(&server.url()).connect().await.unwrap();
    (server, store)
}

/// The outcome that a retry of the operation gets.
pub(crate) async fn replayed(store: &dyn Store, name: &str) -> Recorded {
    match store.claim(&ask(name)).await.unwrap() {
        Claim::Replay { recorded, .. } => recorded,
        other => panic!("{name} was not replayed: {other:?}"),
    }
}
