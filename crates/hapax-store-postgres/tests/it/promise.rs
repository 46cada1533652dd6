//! What a server's settings allow to promise, and servers that cannot be a store.

use hapax_core::{Promise, Store, StoreErrorKind};
use hapax_store_postgres::{OpenError, PostgresStore};
use hapax_testkit::servers::PostgresServer;

use crate::fixture::{acquire, options};

#[tokio::test]
async fn a_durable_server_holds_the_promise_until_its_settings_change() {
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
async fn a_database_that_may_only_be_read_is_refused() {
    let server = PostgresServer::start();
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on");
    let refused = options(&server.url()).connect().await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    let why = std::error::Error::source(&refused).unwrap().downcast_ref::<OpenError>();
    assert_eq!(why, Some(&OpenError::ReadOnly));
}

#[tokio::test]
async fn a_store_that_is_not_there_is_made_only_for_those_who_want_one() {
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
