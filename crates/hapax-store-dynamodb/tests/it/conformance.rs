//! The conformance suite, on a clock that the test controls.
//!
//! The store decides about a lapse by what its own process has seen, on its own clock. The suite's single store has seen
//! every claim since it wrote it, so advancing that clock by a lease is observing for a lease.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hapax_core::{ManualClock, RecordId, Store};
use hapax_store_dynamodb::DynamoDbStore;
use hapax_testkit::servers::DynamoDbServer;
use hapax_testkit::{Rig, store_suite};

use crate::fixture::{clock, options};

struct DynamoDbRig {
    store: Arc<DynamoDbStore>,
    clock: ManualClock,
    server: Arc<DynamoDbServer>,
    table: String,
}

impl Rig for DynamoDbRig {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    async fn damage(&self, id: &RecordId) -> bool {
        let body = format!(
            r##"{{"TableName": "{}", "Key": {{"id": {{"S": "{id}"}}}}, "UpdateExpression": "SET #head = :damage",
                "ExpressionAttributeNames": {{"#head": "head"}},
                "ExpressionAttributeValues": {{":damage": {{"B": "ZGFtYWdl"}}}}}}"##,
            self.table
        );
        self.server.call("UpdateItem", &body);
        true
    }
}

/// Every case in one test: one server serves them all, each in its own table.
#[test]
fn the_store_passes_the_suite() {
    let server = Arc::new(DynamoDbServer::start());
    let tables = AtomicUsize::new(0);
    let rig = async || {
        let table = format!("case-{}", tables.fetch_add(1, Ordering::Relaxed));
        let clock = clock();
        let options = options(&server, &table).clock(clock.clone());
        options.make().await.unwrap();
        let store = Arc::new(options.connect().await.unwrap());
        DynamoDbRig { store, clock, server: server.clone(), table }
    };
    let mut failed = Vec::new();
    for case in store_suite::cases::<DynamoDbRig>() {
        let checked = catch_unwind(AssertUnwindSafe(|| {
            store_suite::run(async {
                let rig = rig().await;
                (case.check)(&rig).await;
            });
        }));
        if checked.is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "these fail: {failed:?}");
}
