//! The promise for each server configuration, and unusable servers.

use hapax_core::{Promise, Store, StoreErrorKind};
use hapax_store_postgres::{OpenError, PostgresStore};
use hapax_testkit::servers::PostgresServer;

use crate::fixture::{acquire, options};

#[tokio::test]
async fn the_promise_changes_with_the_settings() {
    let server = PostgresServer::options().durable().start();
    let store = options(&server.url()).without_wake_ups().connect().await.unwrap();
    let health = store.health().await.unwrap();
    assert_eq!((health.store, health.promise, health.warnings), ("postgres", Promise::AtMostOnce, vec![]));
    server.sql("ALTER SYSTEM SET synchronous_commit = off");
    server.sql("SELECT pg_reload_conf()");
    let mut health = store.health().await.unwrap();
    while health.promise == Promise::AtMostOnce {
        health = store.health().await.unwrap();
    }
    assert!(health.warnings[0].contains("synchronous_commit is off"), "{:?}", health.warnings);
}

#[tokio::test]
async fn a_read_only_database_is_refused() {
    let server = PostgresServer::start();
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on");
    let refused = options(&server.url()).connect().await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    let why = std::error::Error::source(&refused).unwrap().downcast_ref::<OpenError>();
    assert_eq!(why, Some(&OpenError::ReadOnly));
}

#[tokio::test]
async fn an_absent_store_is_created_only_on_request() {
    let server = PostgresServer::shared();
    let options = options(&server.url());
    let missing = options.clone().existing().connect().await.unwrap_err();
    let why = std::error::Error::source(&missing).unwrap().downcast_ref::<OpenError>();
    assert!(matches!(why, Some(OpenError::Missing { .. })), "{missing:?}");
    let made: PostgresStore = options.clone().connect().await.unwrap();
    acquire(&made, "kept").await;
    let again = options.existing().connect().await.unwrap();
    assert_eq!(again.stats().await.unwrap().records(), 1);
}
