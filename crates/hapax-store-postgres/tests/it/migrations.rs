//! Migrations: applied once, by the first process, all or nothing; other versions are recognised.

use futures_util::future::join_all;
use hapax_core::{Store, StoreErrorKind};
use hapax_store_postgres::{MigrateMode, OpenError, PostgresStore, VERSION};
use hapax_testkit::servers::PostgresServer;

use crate::fixture::{acquire, options};

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let server = PostgresServer::shared();
    let options = options(&server.url());
    let tried = PostgresStore::migrate(options.clone(), MigrateMode::DryRun).await.unwrap();
    assert_eq!((tried.from, tried.to, tried.steps), (None, VERSION, vec!["records"]));
    assert!(options.clone().existing().connect().await.is_err());
    let taken = PostgresStore::migrate(options.clone(), MigrateMode::Take).await.unwrap();
    assert_eq!((taken.from, taken.to), (None, VERSION));
    let again = PostgresStore::migrate(options.clone(), MigrateMode::Take).await.unwrap();
    assert_eq!((again.from, again.to, again.steps), (Some(VERSION), VERSION, vec![]));
    options.existing().connect().await.unwrap();
}

#[tokio::test]
async fn processes_that_start_at_once_make_one_store() {
    let server = PostgresServer::shared();
    let options = options(&server.url());
    let stores = join_all((0..8).map(|_| options.clone().connect())).await;
    for (number, store) in stores.into_iter().enumerate() {
        let store = store.unwrap();
        acquire(&store, &format!("by {number}")).await;
        assert_eq!(store.stats().await.unwrap().records(), number as u64 + 1);
    }
}

#[tokio::test]
async fn tables_of_other_versions_are_recognised() {
    let server = PostgresServer::shared();
    let options = options(&server.url());
    let schema = options.schema_name().to_owned();
    options.clone().connect().await.unwrap();
    let newer = VERSION + 1;
    let table = [
        // A newer program has migrated and declares this version compatible.
        (newer, VERSION, None),
        (newer, newer, Some(OpenError::TooNew { found: newer })),
        (0, 0, Some(OpenError::Outdated { found: 0 })),
    ];
    for (version, oldest, refused) in table {
        server.sql(&format!("UPDATE {schema}.migration SET version = {version}, oldest_program = {oldest}"));
        match (options.clone().connect().await, refused) {
            (Ok(store), None) => assert_eq!(acquire(&store, "goes on").await.fence.attempt, 1),
            (Err(error), Some(refused)) => {
                assert_eq!(error.kind(), StoreErrorKind::Incompatible);
                let why = std::error::Error::source(&error).unwrap().downcast_ref::<OpenError>();
                assert_eq!(why, Some(&refused));
            }
            (opened, refused) => panic!("{version}, {oldest}: {opened:?}, {refused:?}"),
        }
    }
}
