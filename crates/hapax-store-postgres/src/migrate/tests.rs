use hapax_core::{Claim, Fenced, Store};
use hapax_testkit::operations::{RETENTION, ask, done};
use hapax_testkit::servers::PostgresServer;

use super::{MIGRATIONS, MigrateMode, Migration, VERSION, migrate, version};
use crate::PostgresStore;
use crate::pool::ConnectionPool;

/// The steps of a later version of this crate.
const LATER: &[Migration] = &[
    MIGRATIONS[0],
    Migration {
        version: VERSION + 1,
        name: "colours",
        oldest_program: VERSION,
        sql: "ALTER TABLE SCHEMA.record ADD COLUMN colour text",
    },
];

/// The first of its steps is valid, the second is not.
const BROKEN: &[Migration] = &[
    LATER[0],
    LATER[1],
    Migration {
        version: VERSION + 2,
        name: "nonsense",
        oldest_program: VERSION,
        sql: "ALTER TABLE nowhere RENAME TO x",
    },
];

#[tokio::test]
async fn a_step_is_applied_while_older_programs_continue() {
    let server = PostgresServer::shared();
    let options = PostgresStore::options(&server.url()).unwrap().schema("migrate_unit");
    let old = options.clone().connect().await.unwrap();
    let Claim::Acquired(lease) = old.claim(&ask("before")).await.unwrap() else { panic!("it is fresh") };
    let pool = ConnectionPool::new(options.clone()).unwrap();

    let failed = migrate(&pool, BROKEN, MigrateMode::Take).await;
    assert!(failed.is_err(), "{failed:?}");
    let client = pool.acquire("test", pool.deadline()).await.unwrap();
    assert_eq!(version(client.client(), "migrate_unit").await.unwrap(), Some((VERSION, VERSION)));

    let taken = migrate(&pool, LATER, MigrateMode::Take).await.unwrap();
    assert_eq!((taken.from, taken.to, taken.steps), (Some(VERSION), VERSION + 1, vec!["colours"]));
    assert_eq!(old.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    assert!(matches!(old.claim(&ask("after")).await.unwrap(), Claim::Acquired(_)));
    // A restarted one continues too.
    let restarted = options.connect().await.unwrap();
    assert!(matches!(restarted.claim(&ask("before")).await.unwrap(), Claim::Replay { .. }));
}
