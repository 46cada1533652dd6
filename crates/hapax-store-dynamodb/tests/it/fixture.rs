//! A store in its own table, and short helpers for requests to it.

use std::time::Duration;

use hapax_core::{Claim, Clock, ManualClock, Recorded, Store, SystemClock};
use hapax_store_dynamodb::{Credentials, DynamoDbStore, Options};
pub(crate) use hapax_testkit::operations::{LEASE, RETENTION, acquire, ask, done, finish};
use hapax_testkit::servers::DynamoDbServer;

/// Long enough for a machine that stalls: tests that wait for an answer do not want a timeout.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A clock that the test controls. It begins now: the server removes expired items by its own clock.
pub(crate) fn clock() -> ManualClock {
    ManualClock::at(SystemClock::new().now())
}

/// A table with this name, which need not exist.
pub(crate) fn options(server: &DynamoDbServer, table: &str) -> Options {
    DynamoDbStore::options(&server.url(table))
        .unwrap()
        .credentials(Credentials::new("test", "test"))
        .timeout(PATIENCE)
}

/// A store in a new table with this name.
pub(crate) async fn connect(server: &DynamoDbServer, table: &str) -> DynamoDbStore {
    let options = options(server, table);
    options.make().await.unwrap();
    options.connect().await.unwrap()
}

/// The outcome that a retry of the operation gets.
pub(crate) async fn replayed(store: &dyn Store, name: &str) -> Recorded {
    match store.claim(&ask(name)).await.unwrap() {
        Claim::Replay { recorded, .. } => recorded,
        other => panic!("{name} was not replayed: {other:?}"),
    }
}
